"""Small programs whose use of GPU memory is compared, line by line, with a real GPU's.

A program is a text of one statement a line. The lines run in one namespace that has ``torch``,
``nn`` and ``F``; each runs in a fresh process when it is recorded.
"""

# ruff: noqa: E501 (a program has one statement a line)

from __future__ import annotations

PROGRAMS: dict[str, str] = {}


def program(name: str, text: str) -> None:
    PROGRAMS[name] = "\n".join(line.strip() for line in text.strip().splitlines())


X = "x = torch.randn(256, 512, device='cuda', requires_grad=True)"
IMAGES = "x = torch.randn(8, 16, 32, 32, device='cuda', requires_grad=True)"

# -- matrix products and their workspace -----------------------------------------------------

program(
    "matmul",
    """
    a = torch.randn(512, 512, device='cuda')
    b = a @ a
    c = a @ a
    del b, c
    torch._C._cuda_clearCublasWorkspaces()
    d = a.mm(a)
    """,
)
program(
    "matmul_on_streams",
    """
    a = torch.randn(256, 256, device='cuda')
    b = a @ a
    s = torch.cuda.Stream()
    exec('with torch.cuda.stream(s): c = a @ a')
    exec('with torch.cuda.stream(s): d = a @ a')
    t = torch.cuda.Stream()
    exec('with torch.cuda.stream(t): e = a @ a')
    """,
)
program(
    "matmul_in_threads",
    """
    import threading
    a = torch.randn(256, 256, device='cuda')
    b = a @ a
    t = threading.Thread(target=lambda: a @ a); t.start(); t.join()
    t = threading.Thread(target=lambda: a @ a); t.start(); t.join()
    t = threading.Thread(target=lambda: a + a); t.start(); t.join()
    """,
)
program(
    "kinds_of_product",
    """
    a = torch.randn(64, 128, device='cuda'); v = torch.randn(128, device='cuda')
    q = torch.dot(v, v)
    p = a @ v
    r = torch.outer(v, v)
    b = torch.randn(4, 64, 128, device='cuda')
    c = b @ b.transpose(1, 2)
    d = torch.einsum('bij,bkj->bik', b, b)
    e = b @ v
    f = torch.baddbmm(c, b, b.transpose(1, 2))
    g = torch.addmm(r, a.T, a)
    h = torch.einsum('ij,ij->', a, a)
    i = torch.tensordot(b, b, dims=([1, 2], [1, 2]))
    j = torch.chain_matmul(a, a.T, a) if hasattr(torch, 'chain_matmul') else None
    k = torch.linalg.multi_dot([a, a.T, a])
    """,
)
program(
    "products_by_type",
    """
    a = torch.randn(128, 256, device='cuda')
    b = a.half() @ a.half().T
    c = a.bfloat16() @ a.bfloat16().T
    d = a.double() @ a.double().T
    w = torch.randn(64, 256, device='cuda'); v = torch.randn(64, device='cuda')
    e = F.linear(a, w, v)
    f = F.linear(a.half(), w.half(), v.half())
    g = F.linear(a, w)
    """,
)
program(
    "dot_first",
    """
    v = torch.randn(1000, device='cuda')
    q = torch.dot(v, v)
    """,
)
program(
    "matvec_first",
    """
    a = torch.randn(100, 200, device='cuda'); v = torch.randn(200, device='cuda')
    p = a @ v
    """,
)
program(
    "linear_train",
    """
    layer = nn.Linear(512, 256).cuda()
    x = torch.randn(128, 512, device='cuda')
    y = layer(x)
    y.sum().backward()
    del y
    layer.zero_grad()
    y = layer(x)
    y.sum().backward()
    layer(x).sum().backward()
    """,
)
program(
    "linear_without_bias",
    """
    layer = nn.Linear(300, 100, bias=False).cuda()
    x = torch.randn(64, 300, device='cuda', requires_grad=True)
    y = layer(x)
    y.square().mean().backward()
    """,
)
program(
    "linear_3d",
    """
    layer = nn.Linear(256, 512).cuda()
    x = torch.randn(4, 32, 256, device='cuda', requires_grad=True)
    y = layer(x)
    y.sum().backward()
    """,
)

# -- training steps --------------------------------------------------------------------------

_MLP = """
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    x = torch.randn(128, 256, device='cuda'); y = torch.randint(0, 10, (128,), device='cuda')
    opt = torch.optim.{optimizer}
    out = net(x)
    loss = F.cross_entropy(out, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    del out, loss
    opt.zero_grad()
    loss = F.cross_entropy(net(x), y); loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=False)
"""
for name, optimizer in {
    "sgd": "SGD(net.parameters(), lr=0.1)",
    "sgd_momentum": "SGD(net.parameters(), lr=0.1, momentum=0.9)",
    "sgd_nesterov_decay": (
        "SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)"
    ),
    "sgd_single": "SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=False)",
    "sgd_fused": "SGD(net.parameters(), lr=0.1, momentum=0.9, fused=True)",
    "adam": "Adam(net.parameters())",
    "adam_single": "Adam(net.parameters(), foreach=False)",
    "adam_fused": "Adam(net.parameters(), fused=True)",
    "adam_amsgrad": "Adam(net.parameters(), amsgrad=True)",
    "adam_capturable": "Adam(net.parameters(), capturable=True)",
    "adamw": "AdamW(net.parameters(), weight_decay=0.01)",
    "adamw_fused": "AdamW(net.parameters(), fused=True)",
    "nadam": "NAdam(net.parameters())",
    "radam": "RAdam(net.parameters())",
    "adamax": "Adamax(net.parameters())",
    "rmsprop": "RMSprop(net.parameters())",
    "rmsprop_centered": "RMSprop(net.parameters(), momentum=0.9, centered=True)",
    "adagrad": "Adagrad(net.parameters())",
    "adadelta": "Adadelta(net.parameters())",
    "asgd": "ASGD(net.parameters())",
    "rprop": "Rprop(net.parameters())",
}.items():
    program(f"optimizer_{name}", _MLP.format(optimizer=optimizer))

program(
    "cnn_training",
    """
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)).cuda()
    opt = torch.optim.AdamW(net.parameters())
    x = torch.randn(32, 3, 32, 32, device='cuda'); y = torch.randint(0, 10, (32,), device='cuda')
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step(); opt.zero_grad()
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    opt.step(); opt.zero_grad()
    del loss
    net.eval()
    exec('with torch.no_grad(): out = net(x)')
    """,
)
program(
    "transformer_training",
    """
    torch.manual_seed(0)
    emb = nn.Embedding(1000, 128).cuda(); enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(128, 4, 256, batch_first=True), 2).cuda(); head = nn.Linear(128, 1000).cuda()
    opt = torch.optim.AdamW([*emb.parameters(), *enc.parameters(), *head.parameters()])
    x = torch.randint(0, 1000, (8, 64), device='cuda')
    out = head(enc(emb(x)))
    loss = F.cross_entropy(out.view(-1, 1000), x.view(-1))
    loss.backward()
    opt.step(); opt.zero_grad()
    del out, loss
    loss = F.cross_entropy(head(enc(emb(x))).view(-1, 1000), x.view(-1)); loss.backward(); opt.step(); opt.zero_grad()
    """,
)
program(
    "lstm_training",
    """
    torch.manual_seed(0)
    emb = nn.Embedding(500, 64).cuda(); rnn = nn.LSTM(64, 128, 2, batch_first=True, dropout=0.2).cuda(); head = nn.Linear(128, 500).cuda()
    opt = torch.optim.Adam([*emb.parameters(), *rnn.parameters(), *head.parameters()])
    x = torch.randint(0, 500, (16, 20), device='cuda')
    h, state = rnn(emb(x))
    loss = F.cross_entropy(head(h).flatten(0, 1), x.flatten())
    loss.backward()
    opt.step(); opt.zero_grad()
    del h, state, loss
    """,
)
program(
    "gradient_accumulation",
    """
    net = nn.Linear(256, 256).cuda()
    x = torch.randn(64, 256, device='cuda')
    net(x).sum().backward()
    net(x).sum().backward()
    total = 0
    loss = net(x).sum(); total += loss
    loss = net(x).sum(); total += loss
    loss = net(x).sum(); total += loss.item()
    del loss, total
    """,
)
program(
    "checkpointing",
    """
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential
    net = nn.Sequential(*[nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(4)]).cuda()
    x = torch.randn(512, 256, device='cuda', requires_grad=True)
    y = net(x)
    y.sum().backward()
    del y; net.zero_grad(); x.grad = None
    y = checkpoint_sequential(net, 2, x, use_reentrant=False)
    y.sum().backward()
    del y; net.zero_grad(); x.grad = None
    y = checkpoint(net, x, use_reentrant=True)
    y.sum().backward()
    """,
)
program(
    "autocast_training",
    """
    net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 256)).cuda()
    opt = torch.optim.SGD(net.parameters(), lr=0.1); scaler = torch.amp.GradScaler('cuda')
    x = torch.randn(128, 256, device='cuda')
    exec('with torch.autocast("cuda"):\\n out = net(x)\\n loss = F.mse_loss(out, x)')
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
    del out, loss
    exec('with torch.autocast("cuda", dtype=torch.bfloat16):\\n out = net(x)\\n loss = F.mse_loss(out, x)')
    loss.backward()
    scaler.unscale_(opt) if False else torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    """,
)
program(
    "autocast_conv",
    """
    net = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()).cuda()
    x = torch.randn(8, 16, 32, 32, device='cuda')
    exec('with torch.autocast("cuda"):\\n out = net(x)')
    out.float().sum().backward()
    """,
)
program(
    "clipping",
    """
    ps = [nn.Parameter(torch.randn(n, n, device='cuda')) for n in (10, 100, 300)]
    for p in ps: p.grad = torch.ones_like(p)
    n = torch.nn.utils.clip_grad_norm_(ps, 1.0)
    torch.nn.utils.clip_grad_value_(ps, 0.5)
    n = torch.nn.utils.clip_grad_norm_(ps, 1.0, foreach=False)
    v = torch.nn.utils.parameters_to_vector(ps)
    """,
)
program(
    "second_derivative",
    f"""
    {X}
    y = (x ** 3).sum()
    g, = torch.autograd.grad(y, x, create_graph=True)
    h, = torch.autograd.grad(g.sum(), x)
    del y, g
    """,
)
program(
    "modules",
    """
    import copy
    net = nn.Sequential(nn.Linear(300, 300), nn.Linear(300, 10)).cuda()
    other = copy.deepcopy(net)
    state = net.state_dict()
    other.load_state_dict(state)
    net.half()
    net.float()
    net.cpu()
    net.cuda()
    del state, other
    net.to('cpu'); net = None
    """,
)

# -- losses ----------------------------------------------------------------------------------

_LOSS = """
    x = torch.randn(256, 100, device='cuda', requires_grad=True); t = torch.rand(256, 100, device='cuda'); k = torch.randint(0, 100, (256,), device='cuda')
    loss = {loss}
    loss.backward()
    del loss
"""
for name, loss in {
    "mse": "F.mse_loss(x, t)",
    "mse_none": "F.mse_loss(x, t, reduction='none').sum()",
    "l1": "F.l1_loss(x, t)",
    "smooth_l1": "F.smooth_l1_loss(x, t)",
    "huber": "F.huber_loss(x, t)",
    "cross_entropy": "F.cross_entropy(x, k)",
    "cross_entropy_smoothed": "F.cross_entropy(x, k, label_smoothing=0.1)",
    "cross_entropy_weighted": "F.cross_entropy(x, k, weight=torch.ones(100, device='cuda'))",
    "cross_entropy_soft": "F.cross_entropy(x, t)",
    "cross_entropy_none": "F.cross_entropy(x, k, reduction='none').mean()",
    "nll": "F.nll_loss(F.log_softmax(x, 1), k)",
    "bce": "F.binary_cross_entropy(x.sigmoid(), t)",
    "bce_logits": "F.binary_cross_entropy_with_logits(x, t)",
    "bce_pos_weight": (
        "F.binary_cross_entropy_with_logits(x, t, pos_weight=torch.ones(100, device='cuda'))"
    ),
    "kl": "F.kl_div(F.log_softmax(x, 1), t, reduction='batchmean')",
    "kl_log": "F.kl_div(F.log_softmax(x, 1), t.log(), reduction='batchmean', log_target=True)",
    "cosine": "F.cosine_embedding_loss(x, t, torch.ones(256, device='cuda'))",
    "hinge": "F.hinge_embedding_loss(x, torch.ones_like(t))",
    "margin": "F.multi_margin_loss(x, k)",
    "triplet": "F.triplet_margin_loss(x, t, t + 1)",
    "poisson": "F.poisson_nll_loss(x, t)",
    "gaussian": "F.gaussian_nll_loss(x, t, torch.ones_like(t))",
    "soft_margin": "F.soft_margin_loss(x, torch.ones_like(t))",
    "mean_square": "((x - t) ** 2).mean()",
    "norm": "(x - t).norm()",
    "logsumexp": "x.logsumexp(1).mean()",
}.items():
    program(f"loss_{name}", _LOSS.format(loss=loss))

# -- activations and other functions with a backward pass -------------------------------------

_FUNCTION = """
    x = torch.randn(256, 512, device='cuda', requires_grad=True)
    h = x * 1
    y = {function}
    y.sum().backward()
    del h, y
"""
for name, function in {
    "relu": "F.relu(h)",
    "relu_inplace": "F.relu(h, inplace=True)",
    "gelu": "F.gelu(h)",
    "gelu_tanh": "F.gelu(h, approximate='tanh')",
    "silu": "F.silu(h)",
    "leaky_relu": "F.leaky_relu(h)",
    "elu": "F.elu(h)",
    "selu": "F.selu(h)",
    "softplus": "F.softplus(h)",
    "sigmoid": "h.sigmoid()",
    "tanh": "h.tanh()",
    "softmax": "h.softmax(-1)",
    "softmax_0": "h.softmax(0)",
    "log_softmax": "F.log_softmax(h, -1)",
    "logsigmoid": "F.logsigmoid(h)",
    "hardswish": "F.hardswish(h)",
    "hardsigmoid": "F.hardsigmoid(h)",
    "hardtanh": "F.hardtanh(h)",
    "relu6": "F.relu6(h)",
    "mish": "F.mish(h)",
    "glu": "F.glu(h)",
    "prelu": "F.prelu(h, torch.ones(1, device='cuda', requires_grad=True))",
    "softsign": "F.softsign(h)",
    "exp": "h.exp()",
    "log": "h.abs().log()",
    "sqrt": "h.abs().sqrt()",
    "pow": "h ** 2",
    "pow_3": "h ** 3",
    "reciprocal": "1 / (h.abs() + 1)",
    "div": "h / (h.abs() + 1)",
    "sin": "h.sin()",
    "clamp": "h.clamp(-1, 1)",
    "abs": "h.abs()",
    "where": "torch.where(h > 0, h, -h)",
    "maximum": "torch.maximum(h, -h)",
    "masked_fill": "h.masked_fill(h > 0, 0.0)",
    "dropout": "F.dropout(h)",
    "dropout_eval": "F.dropout(h, training=False)",
    "dropout_inplace": "F.dropout(h, inplace=True)",
    "dropout2d": "F.dropout2d(h.view(256, 8, 8, 8))",
    "dropout1d": "F.dropout1d(h.view(16, 16, 512))",
    "alpha_dropout": "F.alpha_dropout(h, training=True)",
    "feature_alpha_dropout": "F.feature_alpha_dropout(h, training=True)",
    "layer_norm": "F.layer_norm(h, (512,))",
    "rms_norm": "F.rms_norm(h, (512,))",
    "group_norm": "F.group_norm(h.view(16, 16, 512), 4)",
    "instance_norm": "F.instance_norm(h.view(16, 16, 512))",
    "batch_norm": (
        "F.batch_norm(h, torch.zeros(512, device='cuda'), torch.ones(512, device='cuda'), "
        "training=True)"
    ),
    "normalize": "F.normalize(h, dim=1)",
    "cosine_similarity": "F.cosine_similarity(h, h + 1)",
    "pairwise": "F.pairwise_distance(h, h + 1)",
    "cdist": "torch.cdist(h, h.detach())",
    "cumsum": "h.cumsum(1)",
    "cumprod": "h.cumprod(1)",
    "sum_dim": "h.sum(1)",
    "sum_all": "h.sum()",
    "mean_dim": "h.mean(0)",
    "var": "h.var(1)",
    "std": "h.std()",
    "norm": "h.norm(dim=1)",
    "max_dim": "h.max(1).values",
    "max_all": "h.max()",
    "min_all": "h.min()",
    "amax": "h.amax(1)",
    "median": "h.median(1).values",
    "prod": "h.prod(1)",
    "logsumexp": "h.logsumexp(1)",
    "sort": "h.sort(1).values",
    "topk": "h.topk(5, 1).values",
    "kthvalue": "h.kthvalue(3, 1).values",
    "gather": "h.gather(1, torch.zeros(256, 4, dtype=torch.long, device='cuda'))",
    "scatter": "h.scatter(1, torch.zeros(256, 4, dtype=torch.long, device='cuda'), 1.0)",
    "scatter_add": (
        "torch.zeros_like(h).scatter_add(1, torch.zeros(256, 512, dtype=torch.long, "
        "device='cuda'), h)"
    ),
    "index_select": "h.index_select(0, torch.arange(10, device='cuda'))",
    "index": "h[torch.arange(10, device='cuda')]",
    "index_mask": "h[h > 0]",
    "slice": "h[10:20, ::2]",
    "index_add": "h.index_add(0, torch.arange(10, device='cuda'), torch.ones(10, 512, device='cuda'))",
    "cat": "torch.cat([h, h], 1)",
    "stack": "torch.stack([h, h])",
    "chunk": "h.chunk(4, 1)[1]",
    "expand": "h[:, None].expand(-1, 3, -1)",
    "repeat": "h.repeat(2, 1)",
    "transpose": "h.t().contiguous()",
    "permute": "h.view(16, 16, 512).permute(2, 0, 1).reshape(512, 256)",
    "flip": "h.flip(0)",
    "roll": "h.roll(1, 0)",
    "pad": "F.pad(h, (1, 1))",
    "pad_reflect": "F.pad(h[None], (1, 1), mode='reflect')",
    "tril": "h.tril()",
    "diagonal": "h.diagonal()",
    "broadcast": "h[:, None, :8] - h[None, :, :8]",
    "matmul": "h @ h.t()",
    "half": "h.half()",
    "double": "h.double()",
    "addcmul": "torch.addcmul(h, h, h)",
    "lerp": "torch.lerp(h, h + 1, 0.5)",
    "clone": "h.clone()",
    "detach": "h + h.detach()",
    "inplace": "h.add_(1).mul_(2)",
    "unfold": "F.unfold(h.view(8, 16, 32, 32), 3)",
    "interpolate_nearest": "F.interpolate(h.view(8, 16, 32, 32), scale_factor=2)",
    "interpolate_bilinear": (
        "F.interpolate(h.view(8, 16, 32, 32), scale_factor=2, mode='bilinear')"
    ),
    "interpolate_bicubic": "F.interpolate(h.view(8, 16, 32, 32), size=(40, 40), mode='bicubic')",
    "max_pool2d": "F.max_pool2d(h.view(8, 16, 32, 32), 2)",
    "avg_pool2d": "F.avg_pool2d(h.view(8, 16, 32, 32), 2)",
    "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(h.view(8, 16, 32, 32), 4)",
    "adaptive_avg_pool2d_1": "F.adaptive_avg_pool2d(h.view(8, 16, 32, 32), 1)",
    "adaptive_max_pool2d": "F.adaptive_max_pool2d(h.view(8, 16, 32, 32), 4)",
    "max_pool1d": "F.max_pool1d(h.view(16, 16, 512), 2)",
    "pixel_shuffle": "F.pixel_shuffle(h.view(8, 16, 32, 32), 2)",
    "grid_sample": (
        "F.grid_sample(h.view(8, 16, 32, 32), torch.zeros(8, 16, 16, 2, device='cuda'), "
        "align_corners=False)"
    ),
    "fft": "torch.fft.fft(h).abs()",
    "rfft2": "torch.fft.rfft2(h.view(8, 16, 32, 32)).abs()",
    "bilinear": "F.bilinear(h, h, torch.ones(4, 512, 512, device='cuda'))",
}.items():
    program(f"function_{name}", _FUNCTION.format(function=function))

# -- layers ----------------------------------------------------------------------------------

_LAYER = """
    torch.manual_seed(0)
    layer = {layer}.cuda()
    x = torch.randn({shape}, device='cuda', requires_grad=True)
    y = layer(x)
    y.sum().backward()
    del y
    layer.eval()
    exec('with torch.no_grad(): y = layer(x)')
"""
for name, (layer, shape) in {
    "conv1d": ("nn.Conv1d(16, 32, 3)", "8, 16, 128"),
    "conv2d_1x1": ("nn.Conv2d(16, 32, 1)", "8, 16, 32, 32"),
    "conv2d_7x7": ("nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)", "8, 3, 64, 64"),
    "conv2d_groups": ("nn.Conv2d(16, 16, 3, groups=16)", "8, 16, 32, 32"),
    "conv2d_large": ("nn.Conv2d(64, 128, 3, padding=1)", "16, 64, 56, 56"),
    "conv3d": ("nn.Conv3d(4, 8, 3)", "2, 4, 16, 16, 16"),
    "conv_transpose2d": ("nn.ConvTranspose2d(16, 8, 4, stride=2)", "8, 16, 16, 16"),
    "batch_norm1d": ("nn.BatchNorm1d(512)", "256, 512"),
    "batch_norm2d": ("nn.BatchNorm2d(16)", "8, 16, 32, 32"),
    "batch_norm3d": ("nn.BatchNorm3d(4)", "2, 4, 8, 8, 8"),
    "batch_norm_large": ("nn.BatchNorm2d(64)", "16, 64, 56, 56"),
    "batch_norm_plain": (
        "nn.BatchNorm2d(16, affine=False, track_running_stats=False)",
        "8, 16, 32, 32",
    ),
    "instance_norm2d": ("nn.InstanceNorm2d(16, affine=True)", "8, 16, 32, 32"),
    "group_norm": ("nn.GroupNorm(4, 16)", "8, 16, 32, 32"),
    "layer_norm": ("nn.LayerNorm(512)", "256, 512"),
    "rms_norm": ("nn.RMSNorm(512)", "256, 512"),
    "local_response_norm": ("nn.LocalResponseNorm(2)", "8, 16, 32, 32"),
    "mlp_dropout": (
        "nn.Sequential(nn.Linear(512, 512), nn.Dropout(0.1), nn.Linear(512, 512))",
        "64, 512",
    ),
    "encoder_layer": ("nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)", "8, 50, 128"),
    "encoder_layer_norm_first": (
        "nn.TransformerEncoderLayer(128, 4, 512, dropout=0.0, batch_first=True, norm_first=True)",
        "8, 50, 128",
    ),
}.items():
    program(f"layer_{name}", _LAYER.format(layer=layer, shape=shape))

program(
    "conv_half",
    """
    layer = nn.Conv2d(16, 32, 3, padding=1).cuda().half()
    x = torch.randn(8, 16, 32, 32, device='cuda', dtype=torch.half, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    """,
)
program(
    "conv_channels_last",
    """
    layer = nn.Conv2d(16, 32, 3, padding=1).cuda().to(memory_format=torch.channels_last)
    x = torch.randn(8, 16, 32, 32, device='cuda').to(memory_format=torch.channels_last).requires_grad_()
    y = layer(x)
    y.sum().backward()
    """,
)
program(
    "batch_norm_half",
    """
    layer = nn.BatchNorm2d(16).cuda()
    x = torch.randn(8, 16, 32, 32, device='cuda', dtype=torch.half, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    """,
)

# -- attention -------------------------------------------------------------------------------

_ATTENTION = """
    q, k, v = (torch.randn(2, 4, {length}, 64, device='cuda', dtype=torch.{dtype}, requires_grad=True) for _ in range(3))
    {before}
    y = F.scaled_dot_product_attention(q, k, v{options})
    y.sum().backward()
    del y
    exec('with torch.no_grad(): y = F.scaled_dot_product_attention(q, k, v{options})')
"""
for name, (dtype, length, before, options) in {
    "float": ("float32", 128, "pass", ""),
    "float_100": ("float32", 100, "pass", ""),
    "float_causal": ("float32", 128, "pass", ", is_causal=True"),
    "float_dropout": ("float32", 128, "pass", ", dropout_p=0.1"),
    "half": ("float16", 128, "pass", ""),
    "half_100": ("float16", 100, "pass", ""),
    "half_causal": ("float16", 128, "pass", ", is_causal=True"),
    "half_dropout": ("float16", 128, "pass", ", dropout_p=0.1"),
    "bfloat16": ("bfloat16", 256, "pass", ""),
    "float_mask": (
        "float32",
        128,
        "m = torch.ones(128, 128, dtype=torch.bool, device='cuda').tril()",
        ", attn_mask=m",
    ),
    "half_mask": (
        "float16",
        128,
        "m = torch.ones(128, 128, dtype=torch.bool, device='cuda').tril()",
        ", attn_mask=m",
    ),
    "float_bias": ("float32", 128, "m = torch.zeros(128, 128, device='cuda')", ", attn_mask=m"),
    "double": ("float64", 64, "pass", ""),
}.items():
    program(
        f"attention_{name}",
        _ATTENTION.format(dtype=dtype, length=length, before=before, options=options),
    )
for name, backend in {"math": "MATH", "efficient": "EFFICIENT_ATTENTION"}.items():
    program(
        f"attention_{name}",
        f"""
        from torch.nn.attention import sdpa_kernel, SDPBackend
        q, k, v = (torch.randn(2, 4, 128, 64, device='cuda', requires_grad=True) for _ in range(3))
        exec('with sdpa_kernel(SDPBackend.{backend}): y = F.scaled_dot_product_attention(q, k, v)')
        y.sum().backward()
        """,
    )
_MULTIHEAD = """
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(128, 4, dropout={dropout}, batch_first=True).cuda()
    x = torch.randn(8, 50, 128, device='cuda', requires_grad=True)
    y, w = layer(x, x, x, need_weights={weights})
    y.sum().backward()
    del y, w
"""
program("multihead", _MULTIHEAD.format(dropout=0.0, weights=False))
program("multihead_weights", _MULTIHEAD.format(dropout=0.0, weights=True))
program("multihead_dropout", _MULTIHEAD.format(dropout=0.1, weights=True))

# -- recurrent layers ------------------------------------------------------------------------

_RECURRENT = """
    torch.manual_seed(0)
    layer = nn.{layer}.cuda()
    x = torch.randn({shape}, device='cuda', requires_grad=True)
    y, state = layer(x)
    y.sum().backward()
    del y, state
    layer.eval()
    exec('with torch.no_grad(): y, state = layer(x)')
"""
for name, (layer, shape) in {
    "lstm": ("LSTM(32, 64)", "20, 8, 32"),
    "lstm_first": ("LSTM(32, 64, batch_first=True)", "8, 20, 32"),
    "lstm_2": ("LSTM(32, 64, 2)", "20, 8, 32"),
    "lstm_dropout": ("LSTM(32, 64, 2, dropout=0.5)", "20, 8, 32"),
    "lstm_both": ("LSTM(32, 64, bidirectional=True)", "20, 8, 32"),
    "lstm_no_bias": ("LSTM(32, 64, bias=False)", "20, 8, 32"),
    "lstm_odd": ("LSTM(10, 20)", "5, 3, 10"),
    "lstm_large": ("LSTM(256, 512, 2)", "50, 32, 256"),
    "lstm_projected": ("LSTM(32, 64, proj_size=16)", "20, 8, 32"),
    "gru": ("GRU(32, 64)", "20, 8, 32"),
    "gru_2": ("GRU(32, 64, 2, batch_first=True)", "8, 20, 32"),
    "gru_large": ("GRU(256, 512, 2)", "50, 32, 256"),
    "rnn": ("RNN(32, 64)", "20, 8, 32"),
    "rnn_relu": ("RNN(32, 64, nonlinearity='relu')", "20, 8, 32"),
    "rnn_large": ("RNN(256, 512, 2)", "50, 32, 256"),
    "lstm_half": ("LSTM(32, 64).half()", "20, 8, 32, dtype=torch.half"),
}.items():
    program(f"recurrent_{name}", _RECURRENT.format(layer=layer, shape=shape))
program(
    "lstm_cell",
    """
    cell = nn.LSTMCell(32, 64).cuda()
    x = torch.randn(8, 32, device='cuda', requires_grad=True)
    h, c = cell(x)
    h, c = cell(x, (h, c))
    h.sum().backward()
    del h, c
    """,
)
program(
    "gru_cell",
    """
    cell = nn.GRUCell(32, 64).cuda()
    x = torch.randn(8, 32, device='cuda', requires_grad=True)
    h = cell(x)
    h = cell(x, h)
    h.sum().backward()
    """,
)
program(
    "packed_lstm",
    """
    layer = nn.LSTM(32, 64, batch_first=True).cuda()
    x = torch.randn(4, 10, 32, device='cuda', requires_grad=True)
    p = nn.utils.rnn.pack_padded_sequence(x, [10, 7, 5, 2], batch_first=True)
    y, state = layer(p)
    z, n = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
    z.sum().backward()
    """,
)

# -- embeddings ------------------------------------------------------------------------------

program(
    "embedding",
    """
    e = nn.Embedding(1000, 64).cuda()
    i = torch.randint(0, 1000, (16, 20), device='cuda')
    y = e(i)
    y.sum().backward()
    del y
    """,
)
program(
    "embedding_padding",
    """
    e = nn.Embedding(1000, 64, padding_idx=0).cuda()
    i = torch.randint(0, 1000, (64, 100), device='cuda')
    y = e(i)
    y.sum().backward()
    """,
)
program(
    "embedding_bag",
    """
    e = nn.EmbeddingBag(1000, 64).cuda()
    i = torch.randint(0, 1000, (16, 20), device='cuda')
    y = e(i)
    y.sum().backward()
    """,
)
program(
    "one_hot",
    """
    i = torch.randint(0, 10, (1000,), device='cuda')
    y = F.one_hot(i, 10)
    z = F.one_hot(i, 10).float()
    w = torch.eye(10, device='cuda')[i]
    """,
)

# -- making, copying, indexing, reducing -----------------------------------------------------

program(
    "making",
    """
    a = torch.arange(1000, device='cuda')
    b = torch.linspace(0, 1, 1000, device='cuda')
    c = torch.eye(100, device='cuda')
    d = torch.rand(1000, device='cuda'); e = torch.randn(1000, device='cuda'); f = torch.randint(0, 9, (1000,), device='cuda')
    g = torch.randperm(1000, device='cuda')
    h = torch.randperm(100000, device='cuda')
    i = torch.full((1000,), 3.0, device='cuda'); j = torch.zeros_like(i); k = torch.empty_like(i)
    l = torch.tensor([1.0, 2.0], device='cuda')
    m = torch.tril(torch.ones(100, 100, device='cuda'))
    n = torch.multinomial(d, 10); o = torch.bernoulli(d); p = torch.normal(d, d)
    q = torch.logspace(0, 1, 1000, device='cuda'); r = torch.complex(d, e)
    s = torch.meshgrid(a, a, indexing='ij'); t = torch.cartesian_prod(a[:10], a[:10]); u = torch.combinations(a[:10])
    v = torch.multinomial(d, 10, replacement=True)
    """,
)
program(
    "copies",
    """
    h = torch.randn(1000, 1000)
    a = h.cuda()
    b = h.to('cuda')
    c = h.pin_memory().to('cuda', non_blocking=True); torch.cuda.synchronize()
    d = a.cpu()
    b.copy_(a)
    b.copy_(h)
    e = a.t().contiguous()
    f = a.clone()
    g = a.to('cuda')
    i = a.half().cuda()
    h.t().cuda()
    j = torch.from_numpy(h.numpy()).to('cuda', torch.float16)
    a.copy_(h.t())
    s = a[::2].cpu()
    a[::2].copy_(h[::2])
    v = a.item() if a.numel() == 1 else a[0, 0].item()
    l = a.tolist()
    """,
)
program(
    "indexing",
    """
    a = torch.randn(1000, 100, device='cuda')
    i = torch.arange(0, 1000, 10, device='cuda')
    b = a[i]
    m = a > 0
    c = a[m]
    a[m] = 0
    a[i] = 1
    a[i, 0] = torch.ones(100, device='cuda')
    d = a.index_select(0, i)
    e = a.masked_select(m)
    f = m.nonzero()
    g = torch.where(m)
    h = a.gather(1, i[:, None] % 100)
    a.index_add_(0, i, torch.ones(100, 100, device='cuda'))
    a.index_put_((i,), torch.ones(100, 100, device='cuda'), accumulate=True)
    a.scatter_(1, i[:, None] % 100, 1.0)
    a.scatter_add_(1, i[:, None] % 100, torch.ones(100, 1, device='cuda'))
    a.masked_fill_(m, 0.0)
    j = a.take(i)
    a[5:10] = 3
    a[:, 3] = 2
    k = a[..., None]
    o = a[[1, 2, 3]]
    """,
)
program(
    "reductions",
    """
    a = torch.randn(1 << 20, device='cuda'); b = torch.randn(1000, 1000, device='cuda')
    s = a.sum()
    t = a.mean(); u = a.max(); v = a.min(); w = a.std()
    n = a.norm()
    x = a.argmax()
    y = b.sum(0)
    z = b.sum(1)
    c = b.mean(0); d = b.var(1)
    e = b.max(0)
    f = b.argmax(1)
    g = b.prod()
    h = (b > 0).any(); i = (b > 0).all(); j = (b > 0).sum()
    k = b.cumsum(0)
    l = b.cumsum(1)
    m = a.cumsum(0)
    o = b.softmax(0)
    p = torch.count_nonzero(b)
    q = torch.linalg.vector_norm(b, dim=1)
    r = b.float().half().sum()
    """,
)
program(
    "sorting",
    """
    a = torch.rand(100000, device='cuda'); b = torch.rand(1000, 100, device='cuda')
    s = a.sort()
    t = a.argsort()
    u = b.sort(1)
    v = b.topk(3)
    w = a.topk(10)
    x = a.median()
    y = a.kthvalue(5)
    z = torch.unique((a * 10).long())
    c = torch.unique((a * 10).long(), return_counts=True)
    d = torch.bincount((a * 10).long())
    e = torch.histc(a, 10)
    f = torch.searchsorted(s.values, a[:100])
    g = torch.bucketize(a[:100], s.values)
    h = a.quantile(0.5)
    i = b.mode(1)
    j = torch.unique_consecutive((s.values * 10).long())
    k = b.sort(0)
    """,
)
program(
    "shapes",
    """
    a = torch.randn(64, 32, 16, device='cuda')
    b = a.view(-1); c = a.transpose(0, 1); d = a.unsqueeze(0); e = a.expand(2, 64, 32, 16)
    f = c.reshape(-1)
    g = c.contiguous()
    h = torch.cat([a, a], 1)
    i = torch.stack([a, a])
    j = a.repeat(1, 2, 1)
    k = a.repeat_interleave(2, 0)
    l = a.split(8); m = a.unbind(0)
    n = torch.hstack([a, a]); o = torch.flip(a, [0]); p = a.roll(1, 0)
    q = F.pad(a, (1, 1, 1, 1))
    r = torch.tile(a, (1, 1, 2))
    s = a.permute(2, 1, 0).contiguous()
    t = torch.rot90(a)
    """,
)
program(
    "arithmetic",
    """
    a = torch.randn(1000, 1000, device='cuda'); b = torch.randn(1000, 1000, device='cuda')
    c = a + b
    c = a + b
    c = a * b + a / b - a
    c += a
    c.add_(a, alpha=2)
    c = torch.addcmul(a, a, b)
    c = a.lerp(b, 0.5)
    c = (a > b) & (a < 0)
    c = a[:, :1] + b
    c = a ** 2 + b.exp().sqrt()
    torch.add(a, b, out=a)
    c = a.clamp(0, 1)
    c = torch.sigmoid(a) * torch.tanh(b)
    c = a // 2 + a % 3
    c = a.half() + b
    c = a + 1j
    c = a.round().int()
    c = a.to(torch.float8_e4m3fn)
    """,
)
program(
    "linear_algebra",
    """
    a = torch.randn(64, 64, device='cuda') + 64 * torch.eye(64, device='cuda')
    b = torch.linalg.inv(a)
    c = torch.linalg.solve(a, a)
    d = torch.linalg.det(a)
    e = torch.linalg.cholesky(a @ a.T)
    f = torch.linalg.qr(a)
    g = torch.linalg.svd(a)
    h = torch.linalg.eigh(a @ a.T)
    i = torch.linalg.norm(a); j = torch.trace(a)
    k = torch.linalg.matrix_power(a, 3)
    """,
)
program(
    "running_loss",
    """
    net = nn.Linear(512, 512).cuda(); x = torch.randn(256, 512, device='cuda')
    losses = []
    for _ in range(3): losses.append(net(x).relu().sum())
    losses = [l.item() for l in losses]
    for _ in range(3): losses.append(net(x).relu().sum().detach())
    del losses
    """,
)
program(
    "inference",
    """
    net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU()).cuda().eval()
    x = torch.randn(256, 512, device='cuda')
    y = net(x)
    del y
    exec('with torch.no_grad(): y = net(x)')
    exec('with torch.inference_mode(): y = net(x)')
    """,
)
program(
    "streams_and_memory",
    """
    s = torch.cuda.Stream()
    a = torch.zeros(1 << 20, device='cuda')
    exec('with torch.cuda.stream(s): b = torch.zeros(1 << 20, device="cuda")')
    del a
    exec('with torch.cuda.stream(s): c = torch.zeros(1 << 20, device="cuda")')
    d = torch.zeros(1 << 20, device='cuda')
    d.record_stream(s)
    del d
    torch.cuda.synchronize()
    e = torch.zeros(1 << 20, device='cuda')
    """,
)
program(
    "functorch",
    """
    from torch.func import grad, vmap, functional_call
    net = nn.Linear(32, 1).cuda(); ps = dict(net.named_parameters()); x = torch.randn(16, 32, device='cuda')
    g = grad(lambda p: functional_call(net, p, (x,)).sum())(ps)
    v = vmap(lambda r: (r * r).sum())(x)
    """,
)
program(
    "weight_norms",
    """
    net = torch.nn.utils.parametrizations.weight_norm(nn.Linear(64, 64).cuda())
    x = torch.randn(16, 64, device='cuda')
    y = net(x)
    y.sum().backward()
    net = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(64, 64).cuda())
    y = net(x)
    y.sum().backward()
    """,
)
program(
    "averaging",
    """
    from torch.optim.swa_utils import AveragedModel
    net = nn.Linear(256, 256).cuda()
    avg = AveragedModel(net)
    avg.update_parameters(net)
    avg.update_parameters(net)
    """,
)
program(
    "resnet_block",
    """
    torch.manual_seed(0)
    c1, c2 = nn.Conv2d(32, 32, 3, padding=1, bias=False).cuda(), nn.Conv2d(32, 32, 3, padding=1, bias=False).cuda(); b1, b2 = nn.BatchNorm2d(32).cuda(), nn.BatchNorm2d(32).cuda()
    x = torch.randn(16, 32, 28, 28, device='cuda')
    y = F.relu(b2(c2(F.relu(b1(c1(x)), inplace=True))) + x)
    y.mean().backward()
    del y
    """,
)
