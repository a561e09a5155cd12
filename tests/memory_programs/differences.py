"""Programs whose peaks differ from a real GPU's; docs/simulator.md has the reasons too."""

from __future__ import annotations

CUDNN = "cuDNN chooses the workspace of a convolution or a recurrent layer itself"
SORTING = (
    "sorting, selecting and counting take buffers of CUB or Thrust, whose size depends on both"
)
SOLVERS = "cuSOLVER and MAGMA choose the workspace of a factorisation themselves"
FORMULAS = (
    "PyTorch computes some formulas in another order, or with other temporaries, for tensors of a "
    "subclass, which simulated ones are to C++"
)
FAST_PATH = "the fast path of an encoder layer without gradients is not simulated"

_BY_REASON = {
    CUDNN: """
        cnn_training lstm_training autocast_conv conv_half conv_channels_last conv_train
        layer_conv1d layer_conv2d_1x1 layer_conv2d_7x7 layer_conv2d_groups layer_conv2d_large
        layer_conv3d layer_conv_transpose2d resnet_block packed_lstm
        recurrent_lstm recurrent_lstm_first recurrent_lstm_2 recurrent_lstm_dropout
        recurrent_lstm_both recurrent_lstm_no_bias recurrent_lstm_odd recurrent_lstm_large
        recurrent_lstm_projected recurrent_lstm_half recurrent_gru recurrent_gru_2
        recurrent_gru_large recurrent_rnn recurrent_rnn_relu recurrent_rnn_large
    """,
    SORTING: """
        making indexing reductions sorting sort_and_index embedding_padding embedding_bag
        function_index_mask
    """,
    SOLVERS: "linear_algebra",
    FORMULAS: """
        optimizer_rprop autocast_training averaging loss_bce_logits loss_bce_pos_weight
        loss_cosine loss_soft_margin function_cdist function_cumprod function_max_all
        function_min_all function_matmul function_addcmul function_lerp function_prod
        function_unfold function_bilinear attention_float_100 attention_double attention_math
        multihead multihead_weights multihead_dropout
    """,
    FAST_PATH: "layer_encoder_layer layer_encoder_layer_norm_first",
}

#: Program -> why its peaks, or what is reserved after them, differ.
PEAKS = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}

#: Program -> why what it holds differs as well.
CURRENT = {
    "function_index_mask": "how many elements a random mask selects",
    "function_bilinear": FORMULAS,
    "embedding_bag": "one of three small tables for backward is empty on CUDA",
    "recurrent_gru_large": "a block is not split where little would remain, and which block it is "
    "depends on cuDNN's workspace",
}

#: Program -> the first PyTorch that computes it with the operators of the recorded 2.11, and the
#: first after it that does not.
AS_RECORDED = {
    "function_cosine_similarity": ((2, 11), (3, 0)),
    "function_maximum": ((2, 0), (2, 14)),
    "loss_gaussian": ((2, 11), (3, 0)),
}
