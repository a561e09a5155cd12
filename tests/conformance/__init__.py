"""Small programs that answer alike on CUDA and on the simulator."""
