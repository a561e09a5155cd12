"""Operators, layers, training and autograd: the numbers are those of the CPU.

Where rounding differs (TF32 convolutions, sums in another order) the program prints whether the
results agree within a tolerance, or works on small integers, which are exact.
"""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("values")

OPERATORS = [
    program("reductions", """
        torch.manual_seed(0)
        x = torch.randn(4, 5)
        for name in ("sum", "mean", "prod", "std", "var", "amax", "amin", "argmax", "argmin",
                     "norm", "median", "logsumexp", "count_nonzero", "nansum"):
            f = getattr(torch, name)
            args = (1,) if name in ("amax", "amin", "logsumexp") else ()
            print(name, torch.allclose(f(x.cuda(), *args).cpu().float(), f(x, *args).float()))
    """),
    program("reductions_over_dimensions", """
        x = torch.arange(24.0, device="cuda").view(2, 3, 4)
        print(x.sum(1).tolist(), x.mean((0, 2)).tolist(), x.sum(-1, keepdim=True).shape)
        print(x.max(1).values.tolist(), x.max(1).indices.tolist(), x.amax((0, 1)).tolist())
        print(x.all().item(), x.any(0).tolist(), x.cummax(2).values[0, 0].tolist())
    """),
    program("reductions_of_integers_and_bools", """
        b = torch.tensor([True, False, True], device="cuda")
        i = torch.tensor([3, 4], dtype=torch.int32, device="cuda")
        print(b.sum(), i.sum().dtype, i.prod().item(), b.all().item(), b.any().item())
        print(i.float().mean().item())
        i.mean()
    """),
    program("pointwise_functions", """
        torch.manual_seed(0)
        x = torch.rand(100) * 0.8 + 0.1
        for name in ("exp", "log", "sqrt", "rsqrt", "sin", "cos", "tan", "tanh", "sigmoid", "erf",
                     "asin", "abs", "neg", "floor", "round", "sign", "reciprocal", "log1p"):
            f = getattr(torch, name)
            print(name, torch.allclose(f(x.cuda()).cpu(), f(x), atol=1e-6))
    """),
    program("activations", """
        import torch.nn.functional as F
        torch.manual_seed(0)
        x = torch.randn(4, 6)
        for f in (F.relu, F.gelu, F.silu, F.elu, F.leaky_relu, F.softplus, F.hardtanh, F.mish,
                  F.logsigmoid, F.hardswish, F.selu, F.relu6, F.softsign, F.glu, F.tanhshrink):
            print(f.__name__, torch.allclose(f(x.cuda()).cpu(), f(x), atol=1e-6))
    """),
    program("softmax_family", """
        torch.manual_seed(0)
        x = torch.randn(3, 7)
        print(torch.allclose(x.cuda().softmax(1).cpu(), x.softmax(1), atol=1e-6))
        print(torch.allclose(x.cuda().log_softmax(0).cpu(), x.log_softmax(0), atol=1e-6))
        print(x.half().cuda().softmax(1, dtype=torch.float32).dtype)
        print(torch.allclose(x.cuda().softmax(1).sum(1).cpu(), torch.ones(3)))
    """),
    program("integer_arithmetic", """
        a = torch.tensor([7, -7, 8], device="cuda")
        print(a // 2, a % 3, a / 2, torch.div(a, 2, rounding_mode="trunc"), a.fmod(3))
        print(a ** 2, a << 1, a >> 1, a & 3, a | 1, a ^ 1, ~a)
        print(torch.gcd(a, torch.tensor([21, 14, 12], device="cuda")))
    """),
    program("type_promotion", """
        i, h = torch.ones(2, dtype=torch.int32).cuda(), torch.ones(2, dtype=torch.half).cuda()
        f, b = torch.ones(2).cuda(), torch.ones(2, dtype=torch.bool).cuda()
        print((i + h).dtype, (h + f).dtype, (i + b).dtype, (b + 1).dtype, (i + 1.5).dtype)
        print((h * 2.0).dtype, (i / i).dtype, (h + h.bfloat16()).dtype, (b + b).dtype)
        print(torch.result_type(i, h), (i == f).dtype)
    """),
    program("bool_minus_bool", """
        b = torch.ones(2, dtype=torch.bool, device="cuda")
        b - b
    """),
    program("overflow_and_special_values", """
        print(torch.tensor([250, 10], dtype=torch.uint8, device="cuda") + 10)
        h = torch.tensor([60000.0], dtype=torch.half, device="cuda")
        print(h * 2, torch.tensor([1.0, -1.0, 0.0], device="cuda") / 0)
        x = torch.tensor([float("nan"), 1.0, float("inf")], device="cuda")
        print(x.isnan(), x.isfinite(), x.nan_to_num(posinf=9.0), x.max(), x.nansum())
    """),
    program("comparison_and_logic", """
        a, b = torch.arange(4, device="cuda"), torch.tensor([0, 2, 2, 5], device="cuda")
        print(a < b, a.eq(b), a != b, torch.logical_xor(a > 1, b > 1), (a > 0) & ~(b > 2))
        print(torch.equal(a, b), torch.isclose(a.float(), b.float()).tolist(), a.bool())
    """),
    program("clamp_round_and_where", """
        x = torch.tensor([-2.5, -0.5, 0.5, 1.5, 2.5], device="cuda")
        print(x.clamp(-1, 1), x.clamp(min=0), x.round(), x.trunc(), x.frac())
        print(torch.where(x > 0, x, -x), x.clip(max=1).tolist(), x.heaviside(torch.zeros_like(x)))
    """),
    program("sort_and_topk", """
        x = torch.tensor([[3, 1, 2], [9, 7, 8]], device="cuda")
        print(x.sort(1), x.argsort(1, descending=True), sep="\\n")
        print(x.topk(2, 1), x.flatten().kthvalue(2), x.flatten().msort(), sep="\\n")
    """),
    program("stable_sort", """
        x = torch.tensor([1, 0, 1, 0, 1], device="cuda")
        print(x.sort(stable=True).indices, x.argsort(stable=True, descending=True))
    """),
    program("unique_and_nonzero", """
        x = torch.tensor([3, 1, 3, 2, 1], device="cuda")
        print(x.unique(), x.unique(return_inverse=True, return_counts=True))
        print(x.unique_consecutive(), (x > 1).nonzero().tolist(), torch.where(x > 1))
        print((x == 9).nonzero().shape, (x > 1).nonzero(as_tuple=True), torch.argwhere(x == 3))
    """),
    program("masked_select_shapes", """
        x = torch.arange(6, device="cuda").view(2, 3)
        print(x[x % 2 == 0], x.masked_select(x > 3), x[x > 9].shape, x[:, x[0] > 0])
    """),
    program("cumulative", """
        x = torch.tensor([[1, 2, 3], [4, 5, 6]], device="cuda")
        print(x.cumsum(1), x.cumprod(0), x.float().logcumsumexp(1).shape, x.diff(), sep="\\n")
    """),
    program("histograms", """
        x = torch.tensor([0, 1, 1, 3], device="cuda")
        print(x.bincount(), x.bincount(minlength=6), x.bincount(torch.ones(4, device="cuda")))
        print(x.float().histc(4, 0, 4), torch.bucketize(x, torch.tensor([1, 2], device="cuda")))
        print(torch.searchsorted(torch.tensor([1, 3, 5], device="cuda"), x, right=True))
    """),
    program("one_hot", """
        x = torch.tensor([0, 2, 1], device="cuda")
        print(torch.nn.functional.one_hot(x), torch.nn.functional.one_hot(x, 4).shape)
    """),
    program("quantiles", """
        x = torch.arange(11.0, device="cuda")
        print(x.quantile(0.5), x.quantile(torch.tensor([0.1, 0.9], device="cuda")), x.median())
        print(torch.tensor([2, 2, 5], device="cuda").mode().values, x.nanmedian())
    """),
    program("shape_operations", """
        x = torch.arange(6, device="cuda").view(2, 3)
        print(x.flip(1), x.roll(1, 0), x.rot90(), x.repeat(1, 2), x.tile(2).shape, sep="\\n")
        print(x.repeat_interleave(2, 0), x.tril(), x.triu(1), x.diagonal(), sep="\\n")
        print(x.permute(1, 0).shape, x.unsqueeze(0).squeeze().shape, x.movedim(0, 1).shape)
        print(x.unfold(1, 2, 1).tolist(), x.flatten(), x.T.reshape(-1))
    """),
    program("meshgrid_and_products", """
        a, b = torch.arange(2, device="cuda"), torch.arange(3, device="cuda")
        print(torch.meshgrid(a, b, indexing="ij")[1].tolist(), torch.cartesian_prod(a, b).tolist())
        print(torch.combinations(b).tolist(), torch.block_diag(a, b).shape)
    """),
    program("cat_stack_pad", """
        x = torch.ones(2, 2, device="cuda")
        print(torch.cat([x, x * 2], 1), torch.stack([x, x]).shape, torch.vstack([x, x]).shape)
        print(torch.nn.functional.pad(x, (1, 0, 0, 1), value=5))
        print(torch.nn.functional.pad(x[None], (1, 1), mode="reflect"))
        print(torch.cat([x, x.half()]).dtype)
    """),
    program("einsum_and_tensordot", """
        a = torch.arange(6.0, device="cuda").view(2, 3)
        b = torch.arange(12.0, device="cuda").view(3, 4)
        print(torch.einsum("ij,jk->ik", a, b), torch.einsum("ij->j", a))
        print(torch.einsum("ii", a @ a.T), torch.einsum("i,j->ij", a[0], a[1]))
        print(torch.tensordot(a, b, dims=([1], [0])), torch.einsum("bi,bi->b", a, a))
    """),
    program("matmul_family", """
        a = torch.arange(6.0, device="cuda").view(2, 3)
        v = torch.ones(3, device="cuda")
        print(a @ a.T, a @ v, torch.dot(v, v), torch.outer(v, v).shape, a.mm(a.t()).shape)
        print(torch.addmm(torch.ones(2, device="cuda"), a, a.T), torch.bmm(a[None], a.T[None]))
        print((a.expand(4, 2, 3) @ a.T).shape, torch.linalg.multi_dot([a, a.T, a]).shape)
    """),
    program("matmul_of_views", """
        torch.manual_seed(0)
        a = torch.randn(8, 6)
        g = a.cuda()
        print(torch.allclose((g.t() @ g).cpu(), a.t() @ a, atol=1e-4))
        print(torch.allclose((g[::2] @ g[:4].t()).cpu(), a[::2] @ a[:4].t(), atol=1e-4))
        print(torch.allclose((g[:, 1:3] @ g[:2, 2:]).cpu(), a[:, 1:3] @ a[:2, 2:], atol=1e-4))
    """),
    program("half_precision_matmul", """
        a = torch.arange(6.0, device="cuda").view(2, 3)
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            print((a.to(dtype) @ a.to(dtype).T).dtype, (a.to(dtype) @ a.to(dtype).T).tolist())
        ones = torch.ones(1, 4096, device="cuda", dtype=torch.half)
        print((ones @ ones.T).item(), ones.sum().item())
    """),
    program("complex_arithmetic", """
        z = torch.tensor([1 + 1j, 2 - 1j], device="cuda")
        print(z * z, z.abs().square().round(), z.conj() @ z, torch.view_as_real(z), z.real + z.imag)
        print((z[:, None] @ z.conj()[None]).shape, torch.vdot(z, z), z.angle().shape)
    """),
    program("fft", """
        torch.manual_seed(0)
        x = torch.randn(4, 16)
        for f in (torch.fft.fft, torch.fft.rfft, torch.fft.fft2, torch.fft.ifft):
            print(f.__name__, torch.allclose(f(x.cuda()).cpu(), f(x), atol=1e-4))
        print(torch.allclose(torch.fft.irfft(torch.fft.rfft(x.cuda())).cpu(), x, atol=1e-5))
        print(torch.fft.fftshift(torch.arange(4, device="cuda")), torch.fft.fftfreq(4).shape)
    """),
    program("stft", """
        x = torch.sin(torch.arange(400.0) * 0.3)
        w = torch.hann_window(64)
        a = torch.stft(x, 64, window=w, return_complex=True)
        b = torch.stft(x.cuda(), 64, window=w.cuda(), return_complex=True)
        print(b.shape, torch.allclose(a, b.cpu(), atol=1e-3))
        torch.stft(x.cuda(), 64, window=w, return_complex=True)
    """),
    program("linear_algebra", """
        torch.manual_seed(0)
        a = torch.randn(4, 4, dtype=torch.float64)
        a = a @ a.T + 4 * torch.eye(4, dtype=torch.float64)
        b = torch.randn(4, 2, dtype=torch.float64)
        g = a.cuda()
        for name in ("inv", "det", "cholesky", "eigvalsh", "svdvals", "matrix_norm", "slogdet",
                     "pinv", "matrix_exp", "matrix_rank"):
            want, got = getattr(torch.linalg, name)(a), getattr(torch.linalg, name)(g)
            want, got = (want[1], got[1]) if name == "slogdet" else (want, got)
            print(name, torch.allclose(got.cpu().double(), want.double()))
        print(torch.allclose(torch.linalg.solve(g, b.cuda()).cpu(), torch.linalg.solve(a, b)))
    """),
    program("decompositions", """
        torch.manual_seed(0)
        a = torch.randn(5, 3, dtype=torch.float64, device="cuda")
        q, r = torch.linalg.qr(a)
        u, s, vh = torch.linalg.svd(a, full_matrices=False)
        print(torch.allclose(q @ r, a), torch.allclose(u * s @ vh, a), q.shape, s.shape)
        p, l, up = torch.linalg.lu(a)
        values, vectors = torch.linalg.eigh(a.T @ a)
        print(torch.allclose(p @ l @ up, a), torch.allclose(vectors * values @ vectors.T, a.T @ a))
        print(torch.linalg.lstsq(a, torch.ones(5, 1, dtype=torch.float64).cuda()).solution.shape)
    """),
    program("distances", """
        torch.manual_seed(0)
        a, b = torch.randn(3, 4), torch.randn(5, 4)
        print(torch.allclose(torch.cdist(a.cuda(), b.cuda()).cpu(), torch.cdist(a, b), atol=1e-4))
        print(torch.allclose(torch.pdist(a.cuda()).cpu(), torch.pdist(a), atol=1e-5))
    """),
    program("advanced_indexing", """
        x = torch.arange(12, device="cuda").view(3, 4)
        i, j = torch.tensor([0, 2], device="cuda"), torch.tensor([1, 3], device="cuda")
        print(x[i, j], x[i], x[:, j].tolist(), x[i[:, None], j].tolist(), x[..., -1], x[None].shape)
        print(x[1, 2], x[[0, 2]].shape, x[-1, ::2], x[i, 1:3].tolist(), x[x.sum(1) > 10].shape)
    """),
    program("advanced_index_assignment", """
        x = torch.zeros(3, 4, dtype=torch.long, device="cuda")
        i = torch.tensor([0, 2], device="cuda")
        x[i] = 1
        x[i, i] = torch.tensor([5, 6], device="cuda")
        x[:, 3] = torch.arange(3, device="cuda")
        x[x == 1] = 9
        x[1, 1:3] += 4
        x[..., 0] -= 1
        print(x)
    """),
    program("index_put_accumulate", """
        x = torch.zeros(3, device="cuda")
        i = torch.tensor([0, 0, 2], device="cuda")
        x.index_put_((i,), torch.ones(3, device="cuda"), accumulate=True)
        x[torch.tensor([1, 1], device="cuda")] += 1
        print(x.tolist())
    """),
    program("gather_and_scatter", """
        x = torch.arange(6.0, device="cuda").view(2, 3)
        i = torch.tensor([[0, 2], [1, 1]], device="cuda")
        print(x.gather(1, i), torch.zeros(2, 3, device="cuda").scatter_(1, i, 7.0))
        print(torch.zeros(2, 3, device="cuda").scatter_add_(1, i, torch.ones(2, 2, device="cuda")))
        print(torch.zeros(3, device="cuda").scatter_reduce(0, i[1], x[1, :2], "sum"))
    """),
    program("index_add_copy_fill", """
        i = torch.tensor([0, 2, 0], device="cuda")
        x = torch.zeros(3, 2, device="cuda")
        print(x.index_add_(0, i, torch.ones(3, 2, device="cuda")).tolist())
        print(x.index_fill_(0, i[1:2], 8).tolist())
        print(x.index_copy_(0, i[1:], torch.full((2, 2), 4.0, device="cuda")).tolist())
        print(x.index_select(1, i[:1]).tolist())
    """),
    program("take_and_put", """
        x = torch.arange(6, device="cuda").view(2, 3)
        i = torch.tensor([0, 4], device="cuda")
        print(x.take(i), x.put_(i, torch.tensor([10, 20], device="cuda")))
        print(x.take_along_dim(x.argsort(1, descending=True), 1))
        print(x.masked_scatter(x > 4, torch.arange(6, device="cuda") * -1))
    """),
    program("in_place_on_views", """
        x = torch.zeros(2, 3, device="cuda")
        x[0].fill_(1)
        x[:, 1].mul_(5).add_(1)
        x.view(-1)[::2].sub_(1)
        x.t()[2].copy_(torch.tensor([7.0, 8.0], device="cuda"))
        print(x.tolist())
    """),
    program("in_place_overlap", """
        x = torch.zeros(1, device="cuda").expand(3)
        x.add_(1)
    """),
    program("out_arguments", """
        a, out = torch.arange(3.0, device="cuda"), torch.empty(3, device="cuda")
        result = torch.mul(a, 2, out=out)
        print(result is out, out, torch.cumsum(a, 0, out=out), torch.exp(a, out=out)[0])
        grown = torch.empty(0, device="cuda")
        print(torch.add(a, 1, out=grown), grown.shape)
    """),
    program("foreach_operators", """
        xs = [torch.ones(2, device="cuda"), torch.ones(3, device="cuda")]
        torch._foreach_mul_(xs, 3.0)
        print(torch._foreach_add(xs, xs), [n.item() for n in torch._foreach_norm(xs, 1)])
    """),
    program("python_loop_with_items", """
        x, steps = torch.tensor(100, device="cuda"), 0
        while x > 1:
            x = x // 2 if (x % 2 == 0).item() else 3 * x + 1
            steps += 1
        print(steps, x)
    """),
    program("greedy_loop", """
        torch.manual_seed(0)
        logits = torch.eye(5, device="cuda").roll(1, 1)
        token, seen = 0, []
        while token != 4 and len(seen) < 10:
            token = logits[token].argmax().item()
            seen.append(token)
        print(seen)
    """),
    program("power_iteration", """
        a = torch.tensor([[2.0, 1.0], [1.0, 3.0]], device="cuda")
        v = torch.ones(2, device="cuda")
        for _ in range(50):
            v = a @ v
            v = v / v.norm()
        print(round((v @ a @ v).item(), 3))
    """),
    program("monte_carlo_free_integral", """
        x = torch.linspace(0, 1, 1001, device="cuda", dtype=torch.float64)
        print(round(torch.trapezoid(4 / (1 + x * x), x).item(), 4))
    """),
]

LAYERS = [
    program("linear_layer", """
        torch.manual_seed(0)
        layer, x = torch.nn.Linear(5, 3), torch.randn(4, 5)
        want = layer(x)
        print(torch.allclose(layer.cuda()(x.cuda()).cpu(), want, atol=1e-5), want.shape)
    """),
    program("conv2d_exact_on_integers", """
        x = (torch.arange(2 * 3 * 6 * 6) % 5).float().view(2, 3, 6, 6)
        w = (torch.arange(4 * 3 * 3 * 3) % 3 - 1).float().view(4, 3, 3, 3)
        for options in ({}, {"padding": 1}, {"stride": 2}, {"dilation": 2}, {"padding": "same"}):
            want = torch.nn.functional.conv2d(x, w, **options)
            got = torch.nn.functional.conv2d(x.cuda(), w.cuda(), **options)
            print(options, got.shape, torch.equal(got.cpu(), want))
    """),
    program("conv_gradients_of_integers", """
        x = (torch.arange(72) % 5).float().view(2, 1, 6, 6)
        w = (torch.arange(18) % 3 - 1).float().view(2, 1, 3, 3)
        grads = []
        for device in ("cpu", "cuda"):
            a = x.to(device, copy=True).requires_grad_()
            b = w.to(device, copy=True).requires_grad_()
            torch.nn.functional.conv2d(a, b).sum().backward()
            grads.append((a.grad.cpu(), b.grad.cpu()))
        print([torch.equal(p, q) for p, q in zip(*grads)])
    """),
    program("other_convolutions", """
        torch.manual_seed(0)
        nn = torch.nn
        for layer, shape in (
            (nn.Conv1d(2, 3, 3), (1, 2, 8)), (nn.Conv3d(1, 2, 2), (1, 1, 4, 4, 4)),
            (nn.ConvTranspose2d(2, 3, 2, stride=2), (1, 2, 4, 4)),
            (nn.Conv2d(4, 4, 3, groups=4), (1, 4, 5, 5)), (nn.ConvTranspose1d(2, 1, 3), (1, 2, 5)),
        ):
            x = torch.randn(shape)
            want = layer(x)
            got = layer.cuda()(x.cuda())
            print(type(layer).__name__, got.shape, torch.allclose(got.cpu(), want, atol=1e-2))
    """),
    program("pooling", """
        import torch.nn.functional as F
        torch.manual_seed(0)
        x = torch.randn(2, 3, 8, 8)
        g = x.cuda()
        print(torch.equal(F.max_pool2d(g, 2).cpu(), F.max_pool2d(x, 2)))
        print(torch.allclose(F.avg_pool2d(g, 3, 1, 1).cpu(), F.avg_pool2d(x, 3, 1, 1), atol=1e-6))
        mean = F.adaptive_avg_pool2d(g, 1)
        print(torch.allclose(mean.cpu(), F.adaptive_avg_pool2d(x, 1), atol=1e-6))
        values, where = F.max_pool2d(g, 2, return_indices=True)
        print(torch.equal(where.cpu(), F.max_pool2d(x, 2, return_indices=True)[1]))
        print(F.max_unpool2d(values, where, 2).shape, F.adaptive_max_pool2d(g, (2, 3)).shape)
    """),
    program("batch_norm_train_and_eval", """
        torch.manual_seed(0)
        x = torch.randn(8, 3, 4, 4) * 2 + 1
        a, b = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3).cuda()
        for _ in range(3):
            print(torch.allclose(a(x), b(x.cuda()).cpu(), atol=1e-5))
        print(torch.allclose(a.running_mean, b.running_mean.cpu(), atol=1e-5))
        print(torch.allclose(a.running_var, b.running_var.cpu(), atol=1e-5), b.num_batches_tracked)
        a.eval(), b.eval()
        print(torch.allclose(a(x), b(x.cuda()).cpu(), atol=1e-5), b.num_batches_tracked.item())
    """),
    program("batch_norm_three_gradients", """
        torch.manual_seed(0)
        x, grads = torch.randn(8, 3), []
        for device in ("cpu", "cuda"):
            norm = torch.nn.BatchNorm1d(3).to(device)
            a = x.to(device, copy=True).requires_grad_()
            norm(a).pow(3).sum().backward()
            grads.append([t.grad.cpu() for t in (a, norm.weight, norm.bias)])
        print([torch.allclose(p, q, atol=1e-3) for p, q in zip(*grads)])
    """),
    program("other_norms", """
        torch.manual_seed(0)
        x = torch.randn(2, 4, 3, 3)
        for norm in (torch.nn.LayerNorm([4, 3, 3]), torch.nn.GroupNorm(2, 4), torch.nn.RMSNorm(3),
                     torch.nn.InstanceNorm2d(4), torch.nn.LocalResponseNorm(2)):
            want = norm(x)
            print(type(norm).__name__, torch.allclose(norm.cuda()(x.cuda()).cpu(), want, atol=1e-5))
        print(torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]], device="cuda")))
    """),
    program("recurrent_layers", """
        torch.manual_seed(0)
        x = torch.randn(6, 2, 3)
        for make in (torch.nn.RNN, torch.nn.LSTM, torch.nn.GRU):
            net = make(3, 4, num_layers=2)
            want, state = net(x)
            got, gpu_state = net.cuda()(x.cuda())
            h = gpu_state[0] if isinstance(gpu_state, tuple) else gpu_state
            print(make.__name__, torch.allclose(got.cpu(), want, atol=1e-2), h.shape, h.device)
    """),
    program("bidirectional_lstm_batch_first", """
        torch.manual_seed(0)
        net, x = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True), torch.randn(2, 5, 3)
        want = net(x)[0]
        got, (h, c) = net.cuda()(x.cuda())
        print(got.shape, h.shape, c.shape, torch.allclose(got.cpu(), want, atol=1e-2))
    """),
    program("lstm_gradients", """
        torch.manual_seed(0)
        net, x, grads = torch.nn.LSTM(3, 4), torch.randn(5, 2, 3), []
        for device in ("cpu", "cuda"):
            net.to(device).zero_grad()
            net(x.to(device))[0].sum().backward()
            grads.append([p.grad.cpu().clone() for p in net.parameters()])
        print([torch.allclose(p, q, atol=2e-2) for p, q in zip(*grads)])
    """),
    program("lstm_given_state_and_cells", """
        torch.manual_seed(0)
        cell, x = torch.nn.LSTMCell(3, 4), torch.randn(2, 3)
        want = cell(x)[0]
        cell.cuda()
        state = torch.zeros(2, 4, device="cuda"), torch.zeros(2, 4, device="cuda")
        print(torch.allclose(cell(x.cuda(), state)[0].cpu(), want, atol=1e-5))
    """),
    program("packed_sequences", """
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
        torch.manual_seed(0)
        net = torch.nn.GRU(2, 3, batch_first=True)
        batch = pad_sequence([torch.randn(4, 2), torch.randn(2, 2)], batch_first=True)
        lengths = torch.tensor([4, 2])
        want, _ = pad_packed_sequence(net(pack_padded_sequence(batch, lengths, True))[0], True)
        packed = pack_padded_sequence(batch.cuda(), lengths, batch_first=True)
        print(packed.data.device, packed.batch_sizes, packed.is_cuda)
        got, sizes = pad_packed_sequence(net.cuda()(packed)[0], batch_first=True)
        print(got.shape, sizes, torch.allclose(got.cpu(), want, atol=1e-2))
    """),
    program("pack_lengths_on_gpu", """
        lengths = torch.tensor([2, 1], device="cuda")
        torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2, device="cuda"), lengths)
    """),
    program("transformer_layer_train_and_eval", """
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        x = torch.randn(2, 5, 8)
        want = layer(x)
        layer.cuda()
        print(torch.allclose(layer(x.cuda()).cpu(), want, atol=1e-3))
        layer.eval()
        with torch.no_grad():
            print(torch.allclose(layer(x.cuda()).cpu(), want, atol=1e-3))
    """),
    program("transformer_with_causal_mask", """
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).cuda()
        x = torch.randn(1, 5, 8, device="cuda")
        mask = torch.nn.Transformer.generate_square_subsequent_mask(5, device="cuda")
        y = layer(x, src_mask=mask, is_causal=True)
        x2 = x.clone()
        x2[:, -1] = 0
        y2 = layer(x2, src_mask=mask, is_causal=True)
        print(torch.allclose(y[:, :-1], y2[:, :-1], atol=1e-4), torch.allclose(y, y2, atol=1e-4))
    """),
    program("multihead_attention", """
        torch.manual_seed(0)
        attention, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(2, 4, 8)
        want, weights = attention(x, x, x)
        g = x.cuda()
        got, got_weights = attention.cuda()(g, g, g)
        print(torch.allclose(got.cpu(), want, atol=1e-3), got_weights.shape)
        print(torch.allclose(got_weights.cpu(), weights, atol=1e-3))
    """),
    program("scaled_dot_product_attention", """
        from torch.nn.functional import scaled_dot_product_attention as attend
        torch.manual_seed(0)
        q, k, v = torch.randn(3, 2, 4, 6, 8).unbind()
        for options in ({}, {"is_causal": True}, {"attn_mask": torch.ones(6, 6).tril().bool()}):
            moved = {n: o.cuda() if torch.is_tensor(o) else o for n, o in options.items()}
            got = attend(q.cuda(), k.cuda(), v.cuda(), **moved)
            print(list(options), torch.allclose(got.cpu(), attend(q, k, v, **options), atol=1e-3))
        print(attend(*(t.cuda().half() for t in (q, k, v))).dtype)
    """),
    program("sdpa_input_gradient", """
        from torch.nn.functional import scaled_dot_product_attention as attend
        torch.manual_seed(0)
        x, grads = torch.randn(1, 2, 5, 8), []
        for device in ("cpu", "cuda"):
            a = x.to(device, copy=True).requires_grad_()
            attend(a, a * 2, a, is_causal=True).sum().backward()
            grads.append(a.grad.cpu())
        print(torch.allclose(*grads, atol=1e-3))
    """),
    program("embedding_layers", """
        torch.manual_seed(0)
        table = torch.nn.Embedding(6, 3, padding_idx=0)
        i = torch.tensor([[0, 1], [1, 5]])
        want = table(i)
        table.cuda()
        out = table(i.cuda())
        out.sum().backward()
        print(torch.equal(out.cpu(), want), table.weight.grad[:, 0].tolist())
        bag = torch.nn.EmbeddingBag(6, 3, mode="sum").cuda()
        print(bag(i.cuda()).shape, bag(i.cuda().view(-1), torch.tensor([0, 3]).cuda()).shape)
    """),
    program("losses", """
        import torch.nn.functional as F
        torch.manual_seed(0)
        x, y, c = torch.randn(5, 4), torch.rand(5, 4), torch.tensor([0, 3, 1, 2, 0])
        for f, target in ((F.mse_loss, y), (F.l1_loss, y), (F.smooth_l1_loss, y), (F.huber_loss, y),
                          (F.binary_cross_entropy_with_logits, y), (F.cross_entropy, c),
                          (F.cross_entropy, y), (F.multi_margin_loss, c), (F.kl_div, y)):
            got, want = f(x.cuda(), target.cuda()), f(x, target)
            print(f.__name__, torch.allclose(got.cpu(), want, atol=1e-5))
    """),
    program("cross_entropy_options", """
        import torch.nn.functional as F
        torch.manual_seed(0)
        x, t, w = torch.randn(4, 3), torch.tensor([0, 2, -100, 1]), torch.tensor([1.0, 2.0, 3.0])
        for options in ({}, {"weight": w}, {"label_smoothing": 0.1}, {"reduction": "none"},
                        {"reduction": "sum"}, {"ignore_index": 2}):
            moved = {n: o.cuda() if torch.is_tensor(o) else o for n, o in options.items()}
            target = t.clamp(min=0) if "ignore_index" in options else t
            got = F.cross_entropy(x.cuda(), target.cuda(), **moved)
            print(list(options), torch.allclose(got.cpu(), F.cross_entropy(x, target, **options)))
    """),
    program("triplet_and_cosine_losses", """
        a, b, c = (torch.full((2, 3), v, device="cuda") for v in (1.0, 2.0, 5.0))
        print(torch.nn.TripletMarginLoss()(a, b, c).item() == 0)
        target = torch.tensor([1.0, -1.0], device="cuda")
        print(round(torch.nn.CosineEmbeddingLoss()(a, b, target).item(), 4))
    """),
    program("interpolate", """
        x = torch.arange(4.0).view(1, 1, 2, 2)
        f = torch.nn.functional.interpolate
        print(f(x.cuda(), scale_factor=2, mode="nearest")[0, 0])
        for mode in ("bilinear", "bicubic"):
            got = f(x.cuda(), size=(5, 5), mode=mode, align_corners=False)
            print(mode, torch.allclose(got.cpu(), f(x, size=(5, 5), mode=mode), atol=1e-5))
        print(torch.nn.Upsample(scale_factor=2)(x.cuda()).shape)
    """),
    program("grid_sample_and_affine", """
        import torch.nn.functional as F
        x = torch.arange(16.0).view(1, 1, 4, 4)
        theta = torch.tensor([[[-1.0, 0, 0], [0, 1, 0]]])
        grid = F.affine_grid(theta.cuda(), (1, 1, 4, 4), align_corners=False)
        print(F.grid_sample(x.cuda(), grid, align_corners=False)[0, 0].round())
    """),
    program("unfold_fold_shuffle", """
        import torch.nn.functional as F
        x = torch.arange(16.0, device="cuda").view(1, 1, 4, 4)
        patches = F.unfold(x, 2, stride=2)
        print(patches.shape, torch.equal(F.fold(patches, (4, 4), 2, stride=2), x))
        y = F.pixel_unshuffle(x, 2)
        print(y.shape, torch.equal(F.pixel_shuffle(y, 2), x))
    """),
    program("channels_last_network", """
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.ReLU())
        x = torch.randn(2, 3, 6, 6)
        want = net(x)
        net = net.to("cuda", memory_format=torch.channels_last)
        got = net(x.to("cuda", memory_format=torch.channels_last))
        print(got.is_contiguous(memory_format=torch.channels_last))
        print(torch.allclose(got.cpu(), want, atol=1e-2), net[0].weight.stride())
    """),
    program("ctc_loss", """
        torch.manual_seed(0)
        scores = torch.randn(6, 2, 4).log_softmax(2)
        target, sizes = torch.tensor([[1, 2], [3, 1]]), torch.tensor([6, 6])
        lengths = torch.tensor([2, 2])
        f = torch.nn.functional.ctc_loss
        got = f(scores.cuda(), target.cuda(), sizes.cuda(), lengths.cuda())
        print(torch.allclose(got.cpu(), f(scores, target, sizes, lengths), atol=1e-4))
    """),
    program("hooks_on_modules", """
        net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).cuda()
        seen = []
        net[0].register_forward_hook(lambda m, i, o: seen.append((str(i[0].device), o.shape)))
        net[0].register_full_backward_hook(lambda m, gi, go: seen.append(str(go[0].device)))
        net[1].register_forward_pre_hook(lambda m, i: seen.append("before relu"))
        net(torch.ones(1, 2, device="cuda", requires_grad=True)).sum().backward()
        print(seen)
    """),
]

TRAINING = [
    *(
        program(f"optimizer_{name.lower()}", f"""
            torch.manual_seed(0)
            start, x = torch.nn.Linear(4, 2).state_dict(), torch.randn(8, 4)
            weights = []
            for device, foreach in (("cpu", False), ("cuda", False), ("cuda", True)):
                net = torch.nn.Linear(4, 2).to(device)
                net.load_state_dict(start)
                optimizer = torch.optim.{name}(net.parameters(), {options}, foreach=foreach)
                for _ in range(5):
                    optimizer.zero_grad()
                    net(x.to(device)).pow(2).mean().backward()
                    optimizer.step()
                weights.append(net.weight.detach().cpu())
            print([torch.allclose(w, weights[0], atol=1e-4) for w in weights])
            print(torch.equal(weights[0], start["weight"]), sorted(optimizer.state[net.weight]))
        """)
        for name, options in (
            ("SGD", "lr=0.1, momentum=0.9, weight_decay=0.01"),
            ("Adam", "lr=0.01"),
            ("AdamW", "lr=0.01, amsgrad=True"),
            ("RMSprop", "lr=0.01, momentum=0.5"),
            ("Adagrad", "lr=0.1"),
            ("NAdam", "lr=0.01"),
            ("Adadelta", "lr=1.0"),
        )
    ),
    program("optimizer_fused_adam", """
        p = torch.nn.Parameter(torch.ones(2, device="cuda"))
        adam = torch.optim.Adam([p], lr=0.5, fused=True)
        p.grad = torch.ones_like(p)
        adam.step()
        print([round(v, 4) for v in p.tolist()], adam.state[p]["step"].device)
    """),
    program("optimizer_capturable_and_foreach", """
        p = torch.nn.Parameter(torch.ones(2, device="cuda"))
        torch.optim.Adam([p], foreach=True, fused=True)
    """),
    program("optimizer_lbfgs", """
        x = torch.nn.Parameter(torch.tensor([3.0, -2.0], device="cuda"))
        lbfgs = torch.optim.LBFGS([x], max_iter=20)

        def closure():
            lbfgs.zero_grad()
            loss = (x - torch.tensor([1.0, 2.0], device="cuda")).pow(2).sum()
            loss.backward()
            return loss

        lbfgs.step(closure)
        print([round(v, 3) for v in x.tolist()])
    """),
    program("optimizer_param_groups", """
        net = torch.nn.Linear(2, 2).cuda()
        sgd = torch.optim.SGD([{"params": [net.weight], "lr": 1.0}, {"params": [net.bias]}], lr=0.0)
        before = net.bias.tolist()
        net(torch.ones(1, 2, device="cuda")).sum().backward()
        weight = net.weight.detach().clone()
        sgd.step()
        print(torch.allclose(weight - 1, net.weight), net.bias.tolist() == before)
    """),
    program("zero_grad_sets_none", """
        net = torch.nn.Linear(2, 2).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        net(torch.ones(1, 2, device="cuda")).sum().backward()
        sgd.zero_grad(set_to_none=False)
        print(net.weight.grad)
        sgd.zero_grad()
        print(net.weight.grad)
    """),
    program("gradient_accumulation", """
        net = torch.nn.Linear(3, 1).cuda()
        x = torch.arange(12.0, device="cuda").view(4, 3)
        net(x).sum().backward()
        whole = net.weight.grad.clone()
        net.zero_grad()
        for part in x.split(2):
            net(part).sum().backward()
        print(torch.equal(net.weight.grad, whole), whole.tolist())
    """),
    program("learning_rate_schedulers", """
        sgd = torch.optim.SGD(torch.nn.Linear(1, 1).cuda().parameters(), lr=1.0)
        step = torch.optim.lr_scheduler.StepLR(sgd, 2, 0.5)
        rates = []
        for _ in range(5):
            sgd.step()
            step.step()
            rates.append(sgd.param_groups[0]["lr"])
        print(rates)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(sgd, patience=0)
        for loss in (1.0, 2.0, 3.0):
            plateau.step(torch.tensor(loss, device="cuda"))
        print(sgd.param_groups[0]["lr"])
    """),
    program("tensor_learning_rate", """
        p = torch.nn.Parameter(torch.ones(2, device="cuda"))
        p.grad = torch.ones_like(p)
        torch.optim.SGD([p], lr=torch.tensor(0.5), foreach=False).step()
        print(p)
    """),
    program("clip_gradients", """
        p = torch.nn.Parameter(torch.zeros(2, device="cuda"))
        p.grad = torch.tensor([3.0, 4.0], device="cuda")
        norm = torch.nn.utils.clip_grad_norm_([p], 1.0)
        print(norm, [round(v, 4) for v in p.grad.tolist()])
        torch.nn.utils.clip_grad_value_([p], 0.7)
        print([round(v, 4) for v in p.grad.tolist()])
    """),
    program("clip_gradients_error_if_nonfinite", """
        p = torch.nn.Parameter(torch.zeros(2, device="cuda"))
        p.grad = torch.tensor([float("inf"), 1.0], device="cuda")
        torch.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)
    """),
    program("train_linear_regression", """
        torch.manual_seed(0)
        x = torch.linspace(-1, 1, 64, device="cuda")[:, None]
        net = torch.nn.Linear(1, 1).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.5)
        for _ in range(100):
            loss = torch.nn.functional.mse_loss(net(x), 3 * x - 1)
            sgd.zero_grad()
            loss.backward()
            sgd.step()
        print(round(net.weight.item(), 3), round(net.bias.item(), 3), loss.item() < 1e-6)
    """),
    program("train_embedding_with_cross_entropy", """
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Embedding(6, 8), torch.nn.Linear(8, 6)).cuda()
        adam = torch.optim.Adam(net.parameters(), lr=0.05)
        tokens = torch.arange(6, device="cuda")
        following = tokens.roll(-1)
        for _ in range(100):
            loss = torch.nn.functional.cross_entropy(net(tokens), following)
            adam.zero_grad()
            loss.backward()
            adam.step()
        print(net(tokens).argmax(1).tolist(), loss.item() < 0.1)
    """),
    program("train_small_convnet", """
        torch.manual_seed(0)
        nn = torch.nn
        net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Flatten(), nn.Dropout(0.1), nn.Linear(36, 2)).cuda()
        x = torch.zeros(8, 1, 8, 8, device="cuda")
        x[::2, :, :4], x[1::2, :, 4:] = 1.0, 1.0
        target = torch.tensor([0, 1] * 4, device="cuda")
        adam = torch.optim.Adam(net.parameters(), lr=0.02)
        for _ in range(60):
            adam.zero_grad()
            loss = nn.functional.cross_entropy(net(x), target)
            loss.backward()
            adam.step()
        net.eval()
        print((net(x).argmax(1) == target).float().mean().item(), net(x).requires_grad)
    """),
    program("same_training_on_both_devices", """
        finals = []
        for device in ("cpu", "cuda"):
            torch.manual_seed(0)
            net = torch.nn.Sequential(
                torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 3)
            ).to(device)
            x, y = torch.randn(32, 4).to(device), torch.arange(32).remainder(3).to(device)
            sgd = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            losses = []
            for _ in range(20):
                loss = torch.nn.functional.cross_entropy(net(x), y)
                sgd.zero_grad()
                loss.backward()
                sgd.step()
                losses.append(loss.item())
            finals.append(torch.tensor(losses))
        print(torch.allclose(*finals, atol=1e-3), finals[0][-1] < finals[0][0])
    """),
    program("autocast_dtypes", """
        a, b = torch.ones(2, 2, device="cuda"), torch.ones(2, 2, device="cuda")
        with torch.autocast("cuda"):
            print((a @ b).dtype, (a + b).dtype, a.sum().dtype, a.softmax(0).dtype, a.exp().dtype)
            print((a @ b).sum().dtype, torch.nn.functional.mse_loss(a @ b, b).dtype)
            print(torch.cat([a @ b, a]).dtype, (a.double() @ b.double()).dtype)
            print((a.half() + b).dtype, (a.half() + b.half()).dtype)
            with torch.autocast("cuda", enabled=False):
                print((a @ b).dtype)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            print((a @ b).dtype, torch.nn.functional.layer_norm(a, (2,)).dtype, a.relu().dtype)
        print((a @ b).dtype)
    """),
    program("autocast_state", """
        print(torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            print(torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda"))
            print(torch.is_autocast_enabled("cpu"))
        torch.autocast("gpu")
    """),
    program("autocast_layers", """
        nn = torch.nn
        with torch.autocast("cuda", dtype=torch.float16):
            x = torch.ones(2, 3, 8, 8, device="cuda")
            print(nn.Conv2d(3, 4, 3).cuda()(x).dtype, nn.BatchNorm2d(3).cuda()(x).dtype)
            print(nn.LSTM(3, 4).cuda()(x[0, :, :1, :3].permute(1, 0, 2))[0].dtype)
            print(nn.Embedding(3, 2).cuda()(torch.tensor([1]).cuda()).dtype)
            q = torch.ones(1, 2, 4, 8, device="cuda")
            print(nn.functional.scaled_dot_product_attention(q, q, q).dtype)
    """),
    program("autocast_bce_is_refused", """
        with torch.autocast("cuda"):
            p = torch.full((2,), 0.5, device="cuda")
            torch.nn.functional.binary_cross_entropy(p, p)
    """),
    program("autocast_gradients_are_full_precision", """
        layer = torch.nn.Linear(2, 2).cuda()
        with torch.autocast("cuda"):
            y = layer(torch.ones(1, 2, device="cuda"))
        y.float().sum().backward()
        print(y.dtype, layer.weight.dtype, layer.weight.grad.dtype, layer.weight.grad.tolist())
    """),
    program("grad_scaler_steps", """
        net = torch.nn.Linear(2, 1).cuda()
        sgd, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
        with torch.autocast("cuda"):
            loss = net(torch.ones(4, 2, device="cuda")).mean()
        before = net.weight.detach().clone()
        scaler.scale(loss).backward()
        print(scaler.get_scale(), net.weight.grad.tolist())
        scaler.unscale_(sgd)
        print(net.weight.grad.tolist())
        scaler.step(sgd)
        scaler.update()
        print(scaler.get_scale(), torch.allclose(net.weight, before - 0.1), scaler.is_enabled())
    """),
    program("grad_scaler_unscales", """
        net = torch.nn.Linear(2, 1).cuda()
        sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
        with torch.autocast("cuda"):
            loss = net(torch.ones(4, 2, device="cuda")).float().mean()
        before = net.weight.detach().clone()
        scaler.scale(loss).backward()
        print(scaler.get_scale(), net.weight.grad.tolist())
        scaler.unscale_(sgd)
        print(net.weight.grad.tolist())
        scaler.step(sgd)
        scaler.update()
        print(scaler.get_scale(), torch.allclose(net.weight, before - 0.1), scaler.is_enabled())
    """),
    program("grad_scaler_skips_infinities", """
        net = torch.nn.Linear(2, 1).cuda()
        sgd, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
        before = net.weight.detach().clone()
        scaler.scale(net(torch.full((1, 2), float("inf"), device="cuda")).sum()).backward()
        scaler.step(sgd)
        scaler.update()
        print(torch.equal(net.weight, before), scaler.get_scale(), sorted(scaler.state_dict()))
    """),
    program("grad_scaler_unscale_twice", """
        net = torch.nn.Linear(2, 1).cuda()
        sgd, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
        scaler.scale(net(torch.ones(1, 2, device="cuda")).sum()).backward()
        scaler.unscale_(sgd)
        scaler.unscale_(sgd)
    """),
    program("grad_scaler_half_gradients", """
        net = torch.nn.Linear(2, 1).cuda().half()
        sgd, scaler = torch.optim.SGD(net.parameters(), lr=0.1), torch.amp.GradScaler("cuda")
        scaler.scale(net(torch.ones(1, 2, device="cuda").half()).sum()).backward()
        scaler.step(sgd)
    """),
    program("data_loader_training_epoch", """
        torch.manual_seed(0)
        data = torch.utils.data.TensorDataset(torch.eye(8), torch.arange(8) % 2)
        loader = torch.utils.data.DataLoader(data, batch_size=3, shuffle=True, pin_memory=True)
        net, sizes = torch.nn.Linear(8, 2).cuda(), []
        sgd = torch.optim.SGD(net.parameters(), lr=1.0)
        for epoch in range(10):
            for x, y in loader:
                x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
                sizes.append(len(x))
                sgd.zero_grad()
                torch.nn.functional.cross_entropy(net(x), y).backward()
                sgd.step()
        print(sizes[:3], net(torch.eye(8, device="cuda")).argmax(1).tolist())
    """),
    program("data_parallel_equals_one_gpu", """
        import copy
        torch.manual_seed(0)
        one = torch.nn.Linear(8, 3).cuda()
        two = torch.nn.DataParallel(copy.deepcopy(one))
        x = torch.randn(6, 8, device="cuda")
        a, b = one(x), two(x)
        a.pow(2).mean().backward()
        b.pow(2).mean().backward()
        print(torch.allclose(a, b, atol=1e-6), b.device)
        print(torch.allclose(one.weight.grad, two.module.weight.grad, atol=1e-6))
    """, 2),
    program("data_parallel_shares_of_a_batch", """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.calls = torch.nn.Parameter(torch.ones(1)), 0

            def forward(self, x):
                self.calls += 1
                assert x.device == self.weight.device
                return torch.full((1,), float(len(x)), device=x.device) + 100 * x.get_device()

        net = torch.nn.DataParallel(Net().cuda(), device_ids=[0, 1])
        for n in (4, 5, 1):
            print(n, net(torch.ones(n, 2, device="cuda")).tolist())
        print(net.module.calls, list(net.state_dict()), net.device_ids)
    """, 2),
    program("data_parallel_pieces", """
        from torch.nn.parallel import gather, parallel_apply, replicate, scatter
        net = torch.nn.Linear(2, 1).cuda()
        copies = replicate(net, [0, 1])
        parts = scatter((torch.ones(3, 2), {"n": 5}), [0, 1])
        print([str(c.weight.device) for c in copies])
        print([(len(p[0]), str(p[0].device), p[1]) for p in parts])
        out = parallel_apply(copies, [(p[0],) for p in parts])
        print([str(o.device) for o in out], gather(out, 0).shape, gather(out, "cpu").device)
    """, 2),
    program("data_parallel_batch_norm_statistics", """
        net = torch.nn.DataParallel(torch.nn.BatchNorm1d(1).cuda(), device_ids=[0, 1])
        x = torch.tensor([[0.0], [2.0], [10.0], [20.0]], device="cuda")
        net(x)
        print(round(net.module.running_mean.item(), 4), net.module.num_batches_tracked.item())
    """, 2),
    program("comm_functions", """
        comm = torch.cuda.comm
        x = torch.arange(4.0, device="cuda:0")
        print([(t.tolist(), str(t.device)) for t in comm.broadcast(x, [0, 1])])
        print([(t.tolist(), str(t.device)) for t in comm.scatter(x, [0, 1])])
        parts = comm.scatter(x, [0, 1], chunk_sizes=[1, 3])
        print(comm.gather(parts, destination=0), comm.reduce_add(comm.broadcast(x, [0, 1]), 1))
    """, 2),
    program("comm_functions_imported", """
        from torch.cuda import comm
        x = torch.arange(4.0, device="cuda:0")
        print([(t.tolist(), str(t.device)) for t in comm.broadcast(x, [0, 1])])
        print([(t.tolist(), str(t.device)) for t in comm.scatter(x, [0, 1])])
        parts = comm.scatter(x, [0, 1], chunk_sizes=[1, 3])
        print(comm.gather(parts, destination=0), comm.reduce_add(comm.broadcast(x, [0, 1]), 1))
    """, 2),
]

AUTOGRAD = [
    program("gradients_of_expressions", """
        x = torch.tensor([1.0, 2.0, 3.0], device="cuda", requires_grad=True)
        (x.pow(3).sum() + x.prod()).backward()
        print(x.grad)
    """),
    program("gradients_accumulate", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        for _ in range(3):
            (x * 2).sum().backward()
        print(x.grad)
        x.grad.zero_()
        print(x.grad, x.grad_fn)
    """),
    program("double_backward", """
        x = torch.tensor(2.0, device="cuda", requires_grad=True)
        (first,) = torch.autograd.grad(x**3, x, create_graph=True)
        (second,) = torch.autograd.grad(first, x)
        print(first, second)
    """),
    program("gradient_penalty", """
        net = torch.nn.Linear(2, 1).cuda()
        torch.nn.init.ones_(net.weight)
        x = torch.ones(3, 2, device="cuda", requires_grad=True)
        (g,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
        (g.pow(2).sum()).backward()
        print(g.tolist(), net.weight.grad.tolist())
    """),
    program("backward_twice", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        y = (x * x).sum()
        y.backward()
        y.backward()
    """),
    program("retain_graph", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        print(x.grad)
    """),
    program("retain_grad", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        y = x * 3
        y.retain_grad()
        (y * y).sum().backward()
        print(y.grad, x.grad)
    """),
    program("leaf_in_place", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        x += 1
    """),
    program("leaf_view_in_place", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        x[0] = 5
    """),
    program("leaf_in_place_without_grad", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        with torch.no_grad():
            x += 1
            x[0] = 7
        print(x, x._version)
    """),
    program("version_counter_error", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        y = x * 2
        z = (y * y).sum()
        y += 1
        z.backward()
    """),
    program("version_counters", """
        x = torch.zeros(3, device="cuda")
        v = x[1:]
        v.add_(1)
        x.mul_(2)
        print(x._version, v._version, x.detach()._version, x.clone()._version)
    """),
    program("in_place_is_differentiable", """
        x = torch.ones(3, device="cuda", requires_grad=True)
        y = x * 1
        y[1] = 0
        y.mul_(2)
        y.sum().backward()
        print(x.grad)
    """),
    program("backward_of_vector", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        (x * 2).backward()
    """),
    program("backward_without_graph", 'torch.ones(1, device="cuda").sum().backward()'),
    program("unused_input", """
        x = torch.ones(1, device="cuda", requires_grad=True)
        y = torch.ones(1, device="cuda", requires_grad=True)
        print(torch.autograd.grad((x * 2).sum(), (x, y), allow_unused=True))
        torch.autograd.grad((x * 2).sum(), y)
    """),
    program("tensor_hooks", """
        x = torch.ones(2, device="cuda", requires_grad=True)
        seen = []
        y = x * 2
        handle = y.register_hook(lambda g: seen.append((str(g.device), g.tolist())) or g * 10)
        y.sum().backward()
        handle.remove()
        print(seen, x.grad)
        x.register_post_accumulate_grad_hook(lambda p: print("ready", p.grad.tolist()))
        (x * 1).sum().backward()
    """),
    program("custom_function", """
        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * 3 * x**2

        x = torch.tensor([2.0], device="cuda", requires_grad=True)
        Cube.apply(x).sum().backward()
        print(x.grad)
        print(torch.autograd.gradcheck(Cube.apply, x.double().detach().requires_grad_()))
    """),
    program("saved_tensor_hooks_offload", """
        x = torch.ones(3, device="cuda", requires_grad=True)
        with torch.autograd.graph.save_on_cpu():
            y = (x * x).sum()
        y.backward()
        print(x.grad)
    """),
    program("checkpoint", """
        from torch.utils.checkpoint import checkpoint, checkpoint_sequential
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Tanh())
        net.cuda()
        x = torch.ones(8, 4, device="cuda", requires_grad=True)
        grads = []
        for reentrant in (None, True, False):
            torch.manual_seed(1)
            x.grad = None
            y = net(x) if reentrant is None else checkpoint(net, x, use_reentrant=reentrant)
            y.sum().backward()
            grads.append(x.grad.clone())
        print([torch.equal(g, grads[0]) for g in grads])
        print(checkpoint_sequential(net, 2, x, use_reentrant=False).shape)
    """),
    program("no_grad_and_enable_grad", """
        x = torch.ones(1, device="cuda", requires_grad=True)
        with torch.no_grad():
            a = x * 2
            with torch.enable_grad():
                b = x * 2
        print(a.requires_grad, b.requires_grad, torch.is_grad_enabled())

        @torch.no_grad()
        def f(t):
            return t * 2

        print(f(x).requires_grad)
    """),
    program("detached_target", """
        x = torch.tensor(3.0, device="cuda", requires_grad=True)
        (x * x.detach()).backward()
        print(x.grad, x.detach().requires_grad)
    """),
    program("stateful_running_loss", """
        w = torch.ones(2, device="cuda", requires_grad=True)
        total = 0
        for _ in range(3):
            total = total + (w * 2).sum()
        nodes, left = 0, [total.grad_fn]
        while left:
            node = left.pop()
            nodes += 1
            left += [child for child, _ in node.next_functions if child]
        print(nodes, total.item(), total.detach().grad_fn)
    """),
    program("func_grad_and_vmap", """
        x = torch.arange(3.0, device="cuda")
        print(torch.func.grad(lambda t: (t**2).sum())(x), torch.func.vmap(lambda t: t * 2 + 1)(x))
        print(torch.func.vmap(torch.func.grad(lambda t: t**3))(x))
        print(torch.func.jacrev(lambda t: t * t)(x).tolist(), torch.func.jacfwd(torch.sin)(x).shape)
        print(torch.func.hessian(lambda t: (t**3).sum())(x).diagonal())
    """),
    program("per_sample_gradients", """
        net = torch.nn.Linear(2, 1).cuda()
        params = {name: p.detach() for name, p in net.named_parameters()}

        def loss(params, x):
            return torch.func.functional_call(net, params, (x,)).sum()

        x = torch.arange(6.0, device="cuda").view(3, 2)
        grads = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(params, x)
        print(grads["weight"].tolist(), grads["bias"].shape)
    """),
    program("forward_mode", """
        import torch.autograd.forward_ad as fwAD
        with fwAD.dual_level():
            x = fwAD.make_dual(torch.ones(2, device="cuda"), torch.full((2,), 3.0, device="cuda"))
            print(fwAD.unpack_dual(x * x).tangent)
        print(torch.func.jvp(torch.square, (torch.ones(1).cuda(),), (torch.ones(1).cuda(),)))
    """),
    program("jacobian_and_hessian", """
        x = torch.tensor([1.0, 2.0], device="cuda")
        print(torch.autograd.functional.jacobian(lambda t: t**2, x))
        print(torch.autograd.functional.hessian(lambda t: (t**3).sum(), x))
    """),
    program("anomaly_mode", """
        x = torch.tensor([-1.0], device="cuda", requires_grad=True)
        with torch.autograd.detect_anomaly(check_nan=True):
            torch.sqrt(x).sum().backward()
    """),
    program("set_detect_and_nan_gradient", """
        x = torch.tensor([0.0, 4.0], device="cuda", requires_grad=True)
        torch.sqrt(x).sum().backward()
        print(x.grad)
    """),
    program("gradients_of_indexing", """
        x = torch.arange(4.0, device="cuda", requires_grad=True)
        i = torch.tensor([0, 0, 3], device="cuda")
        (x[i] * torch.tensor([1.0, 2.0, 3.0], device="cuda")).sum().backward()
        print(x.grad)
        x.grad = None
        x[x > 1].pow(2).sum().backward()
        print(x.grad)
    """),
    program("gradients_of_selection", """
        x = torch.tensor([[1.0, 5.0, 3.0]], device="cuda", requires_grad=True)
        (x.max() + x.topk(2).values.sum() + x.sort().values[0, 0] + x.median()).backward()
        print(x.grad)
    """),
    program("gradients_of_broadcast", """
        a = torch.ones(3, 1, device="cuda", requires_grad=True)
        b = torch.ones(4, device="cuda", requires_grad=True)
        (a * b).sum().backward()
        print(a.grad.tolist(), b.grad.tolist())
    """),
    program("optimise_the_input", """
        x = torch.zeros(2, device="cuda", requires_grad=True)
        for _ in range(50):
            loss = (x - torch.tensor([1.0, -2.0], device="cuda")).pow(2).sum()
            (g,) = torch.autograd.grad(loss, x)
            with torch.no_grad():
                x -= 0.2 * g
        print([round(v, 3) for v in x.tolist()])
    """),
    program("graph_freed_after_loss_deleted", """
        import weakref
        x = torch.ones(2, device="cuda", requires_grad=True)
        hidden = x * 2
        y = hidden.pow(2).sum()
        ref = weakref.ref(hidden)
        del hidden
        y.backward()
        del y
        print(ref() is None)
    """),
]

PROGRAMS = [*OPERATORS, *LAYERS, *TRAINING, *AUTOGRAD]
