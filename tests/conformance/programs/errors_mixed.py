"""Tensors of different devices met in one operator: which are errors, and which are allowed."""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("errors_mixed")

ELEMENTWISE = [
    program("add_cpu_first", 'torch.ones(3) + torch.ones(3, device="cuda")'),
    program("sub_gpu_first", 'torch.ones(3, device="cuda") - torch.ones(3)'),
    program("mul_gpu_first", 'torch.ones(3, device="cuda") * torch.ones(3)'),
    program("mul_cpu_first", 'torch.ones(3) * torch.ones(3, device="cuda")'),
    program("div_cpu_first", 'torch.ones(3) / torch.ones(3, device="cuda")'),
    program("pow_gpu_base", 'torch.ones(3, device="cuda") ** torch.ones(3)'),
    program("pow_cpu_base", 'torch.ones(3) ** torch.ones(3, device="cuda")'),
    program("remainder_mixed", 'torch.arange(3, device="cuda") % torch.tensor([2, 2, 2])'),
    program("floor_divide_mixed", 'torch.arange(3, device="cuda") // torch.tensor([2, 2, 2])'),
    program("eq_gpu_first", 'torch.ones(3, device="cuda") == torch.ones(3)'),
    program("eq_cpu_first", 'torch.ones(3) == torch.ones(3, device="cuda")'),
    program("accuracy_mixed", """
        logits = torch.eye(4, device="cuda")
        labels = torch.arange(4)
        print((logits.argmax(1) == labels).float().mean().item())
    """),
    program("gt_mixed", 'torch.ones(3, device="cuda") > torch.zeros(3)'),
    program("logical_and_mixed", """
        torch.logical_and(torch.ones(3, device="cuda"), torch.ones(3))
    """),
    program("bitwise_and_mixed", """
        torch.ones(3, dtype=torch.bool, device="cuda") & torch.ones(3, dtype=torch.bool)
    """),
    program("maximum_mixed", 'torch.maximum(torch.ones(3, device="cuda"), torch.ones(3))'),
    program("minimum_cpu_first", 'torch.minimum(torch.ones(3), torch.ones(3, device="cuda"))'),
    program("atan2_mixed", 'torch.atan2(torch.ones(3, device="cuda"), torch.ones(3))'),
    program("clamp_tensor_mixed", 'torch.ones(3, device="cuda").clamp(min=torch.zeros(3))'),
    program("lerp_mixed", 'torch.lerp(torch.ones(3, device="cuda"), torch.ones(3), 0.5)'),
    program("lerp_weight_mixed", """
        a = torch.ones(3, device="cuda")
        torch.lerp(a, a, torch.full((3,), 0.5))
    """),
    program("addcmul_mixed", """
        a = torch.ones(3, device="cuda")
        torch.addcmul(a, a, torch.ones(3))
    """),
    program("addcdiv_mixed", """
        a = torch.ones(3, device="cuda")
        torch.addcdiv(a, torch.ones(3), a)
    """),
    program("add_alpha_mixed", 'torch.add(torch.ones(3, device="cuda"), torch.ones(3), alpha=2)'),
    program("iadd_gpu_target", """
        a = torch.ones(3, device="cuda")
        a += torch.ones(3)
    """),
    program("iadd_cpu_target", """
        total = torch.zeros(3)
        total += torch.ones(3, device="cuda")
    """),
    program("imul_cpu_target", """
        a = torch.ones(3)
        a.mul_(torch.ones(3, device="cuda"))
    """),
    program("add_out_on_cpu", """
        a = torch.ones(3, device="cuda")
        torch.add(a, a, out=torch.empty(3))
    """),
    program("add_out_on_gpu", """
        a = torch.ones(3)
        torch.add(a, a, out=torch.empty(3, device="cuda"))
    """),
    program("sum_out_on_cpu", 'torch.sum(torch.ones(3, 2, device="cuda"), 0, out=torch.empty(2))'),
    program("broadcast_mixed", 'torch.ones(4, 3, device="cuda") - torch.ones(3)'),
    program("normalise_with_cpu_mean", """
        mean = torch.tensor([0.5, 0.5, 0.5]).view(1, 3, 1, 1)
        images = torch.ones(2, 3, 4, 4, device="cuda")
        images - mean
    """),
    program("failed_add_leaves_both", """
        a, b = torch.ones(3, device="cuda"), torch.ones(3)
        try:
            a.add_(b)
        except RuntimeError as error:
            print(type(error).__name__)
        print(a.tolist(), b.tolist(), (a + a).tolist())
    """),
]

SCALARS = [
    program("cpu_scalar_second", 'print((torch.ones(3, device="cuda") * torch.tensor(2.0)))'),
    program("cpu_scalar_first", 'print(torch.tensor(2.0) * torch.ones(3, device="cuda"))'),
    program("cpu_scalar_in_place", """
        a = torch.ones(3, device="cuda")
        a.mul_(torch.tensor(3.0))
        print(a)
    """),
    program("gpu_scalar_second", 'torch.ones(3) * torch.tensor(2.0, device="cuda")'),
    program("gpu_scalar_first", 'torch.tensor(2.0, device="cuda") + torch.ones(3)'),
    program("gpu_scalar_with_cpu_scalar", """
        a, b = torch.tensor(1.0, device="cuda"), torch.tensor(2.0)
        print((a + b).device, (b + a).device, (a + b).item())
    """),
    program("cpu_scalar_target", """
        total = torch.tensor(0.0)
        total += torch.tensor(1.0, device="cuda")
        print(total)
    """),
    program("running_loss_number", """
        total = 0.0
        for step in range(3):
            total += torch.tensor(1.5, device="cuda")
        print(total, total.device)
    """),
    program("one_element_cpu_vector", 'torch.ones(3, device="cuda") * torch.ones(1)'),
    program("cpu_scalar_keeps_dtype", """
        h = torch.ones(2, dtype=torch.half, device="cuda")
        i = torch.ones(2, dtype=torch.int64, device="cuda")
        s = torch.tensor(2.5, dtype=torch.float64)
        print((h * s).dtype, (i * s).dtype, (i * s).tolist())
    """),
    program("cpu_scalar_comparison", """
        print(torch.arange(4, device="cuda") > torch.tensor(1))
    """),
    program("cpu_scalar_maximum", """
        print(torch.maximum(torch.arange(3.0, device="cuda"), torch.tensor(1.0)))
    """),
    program("cpu_scalar_clamp", """
        print(torch.arange(4.0, device="cuda").clamp(torch.tensor(1.0), torch.tensor(2.0)))
    """),
    program("cpu_scalar_lerp_weight", """
        a = torch.zeros(2, device="cuda")
        print(torch.lerp(a, a + 4, torch.tensor(0.25)))
    """),
    program("cpu_scalar_addcmul", """
        a = torch.ones(2, device="cuda")
        print(torch.addcmul(a, a, torch.tensor(3.0)))
    """),
    program("cpu_scalar_matmul", 'torch.ones(3, 3, device="cuda") @ torch.tensor(2.0)'),
    program("python_numbers_are_fine", """
        a = torch.ones(3, device="cuda")
        print((2 * a + 1).tolist(), (a / 2).tolist(), (1 - a).tolist(), (a == 1).all().item())
    """),
    program("numpy_float_times_gpu", """
        import numpy as np
        a = torch.ones(3, device="cuda")
        print(np.float64(2) * a, a * np.float32(2))
    """),
    program("numpy_array_plus_gpu", """
        import numpy as np
        torch.ones(3, device="cuda") + np.ones(3, dtype=np.float32)
    """),
    program("numpy_array_times_gpu", """
        import numpy as np
        np.ones(3, dtype=np.float32) * torch.ones(3, device="cuda")
    """),
]

SELECTING = [
    program("where_x_on_cpu", """
        a = torch.ones(3, device="cuda")
        torch.where(a > 0, torch.ones(3), a)
    """),
    program("where_with_numbers", """
        a = torch.arange(3.0, device="cuda")
        print(torch.where(a > 0, a, 9.0), torch.where(a > 0, torch.tensor(5.0), a))
    """),
    program("index_gpu_with_cpu_mask", """
        a = torch.arange(4, device="cuda")
        print(a[torch.tensor([True, False, True, False])].tolist())
    """),
    program("index_cpu_with_gpu_mask", """
        torch.arange(4)[torch.tensor([True, False, True, False], device="cuda")]
    """),
    program("index_two_devices", """
        a = torch.arange(9, device="cuda").view(3, 3)
        print(a[torch.tensor([0, 1]), torch.tensor([2, 2], device="cuda")].tolist())
    """),
    program("index_cpu_scalar_index", """
        a = torch.arange(4, device="cuda")
        print(a[torch.tensor(2)], torch.arange(4)[torch.tensor(2, device="cuda")])
    """),
    program("index_permutation_on_cpu", """
        a = torch.arange(6, device="cuda")
        order = torch.tensor([5, 3, 1])
        print(a[order].tolist(), a[order].device)
    """),
    program("setitem_cpu_vector", """
        a = torch.zeros(4, device="cuda")
        a[1:3] = torch.tensor([1.0, 2.0])
        print(a.tolist())
    """),
    program("setitem_into_cpu", """
        results = torch.zeros(3)
        for i in range(3):
            results[i] = torch.tensor(float(i), device="cuda")
        print(results)
    """),
    program("index_put_cpu_values", """
        a = torch.zeros(4, device="cuda")
        a[torch.tensor([0, 2], device="cuda")] = torch.ones(2)
    """),
    program("index_put_cpu_scalar", """
        a = torch.zeros(4, device="cuda")
        a[torch.tensor([0, 2], device="cuda")] = torch.tensor(7.0)
        print(a.tolist())
    """),
    program("index_put_cpu_index", """
        a = torch.zeros(4, device="cuda")
        a[torch.tensor([0, 2])] = 3.0
        print(a.tolist())
    """),
    program("mask_assign_cpu_mask", """
        a = torch.zeros(4, device="cuda")
        a[torch.tensor([True, False, True, False])] = 3.0
        print(a.tolist())
    """),
    program("index_put_cpu_target", """
        a = torch.zeros(4)
        a[torch.tensor([0, 2], device="cuda")] = 1.0
    """),
    program("gather_cpu_index", """
        torch.ones(2, 2, device="cuda").gather(1, torch.zeros(2, 1, dtype=torch.long))
    """),
    program("gather_gpu_index", """
        torch.ones(2, 2).gather(1, torch.zeros(2, 1, dtype=torch.long, device="cuda"))
    """),
    program("scatter_cpu_index", """
        torch.zeros(3, device="cuda").scatter_(0, torch.tensor([1]), 1.0)
    """),
    program("scatter_cpu_source", """
        torch.zeros(3, device="cuda").scatter(0, torch.tensor([1], device="cuda"), torch.ones(1))
    """),
    program("scatter_add_mixed", """
        torch.zeros(3).scatter_add_(0, torch.tensor([1], device="cuda"), torch.ones(1))
    """),
    program("index_select_cpu_index", """
        torch.ones(3, device="cuda").index_select(0, torch.tensor([1]))
    """),
    program("index_select_gpu_index", """
        torch.ones(3).index_select(0, torch.tensor([1], device="cuda"))
    """),
    program("index_add_mixed", """
        torch.zeros(3, device="cuda").index_add_(0, torch.tensor([1], device="cuda"), torch.ones(1))
    """),
    program("index_copy_mixed", """
        torch.zeros(3, device="cuda").index_copy_(0, torch.tensor([1]), torch.ones(1))
    """),
    program("masked_fill_cpu_mask", """
        torch.zeros(3, device="cuda").masked_fill(torch.ones(3, dtype=torch.bool), 1.0)
    """),
    program("masked_fill_cpu_value", """
        a = torch.zeros(3, device="cuda")
        print(a.masked_fill(a == 0, torch.tensor(2.0)).tolist())
    """),
    program("masked_fill_gpu_value", """
        a = torch.zeros(3)
        print(a.masked_fill(a == 0, torch.tensor(2.0, device="cuda")).tolist())
    """),
    program("masked_select_mixed", """
        torch.ones(3, device="cuda").masked_select(torch.ones(3, dtype=torch.bool))
    """),
    program("take_mixed", 'torch.ones(3, device="cuda").take(torch.tensor([0]))'),
    program("take_along_dim_mixed", """
        torch.ones(2, 2, device="cuda").take_along_dim(torch.zeros(2, 1, dtype=torch.long), 1)
    """),
    program("searchsorted_mixed", """
        torch.searchsorted(torch.arange(4.0, device="cuda"), torch.tensor([2.0]))
    """),
    program("bincount_weights_mixed", """
        torch.bincount(torch.tensor([0, 1], device="cuda"), weights=torch.ones(2))
    """),
    program("isin_mixed", 'torch.isin(torch.arange(4, device="cuda"), torch.tensor([1, 2]))'),
]

JOINING = [
    program("cat_gpu_first", 'torch.cat([torch.ones(2, device="cuda"), torch.ones(2)])'),
    program("cat_cpu_first", 'torch.cat([torch.ones(2), torch.ones(2, device="cuda")])'),
    program("stack_mixed", 'torch.stack([torch.ones(2, device="cuda"), torch.ones(2)])'),
    program("hstack_mixed", 'torch.hstack([torch.ones(2), torch.ones(2, device="cuda")])'),
    program("cat_empty_cpu_first", """
        seen = torch.empty(0)
        for batch in range(2):
            seen = torch.cat([seen, torch.ones(2, device="cuda")])
        print(seen)
    """),
    program("stack_of_gpu_scalars", """
        print(torch.stack([torch.tensor(float(i), device="cuda") for i in range(3)]))
    """),
    program("tensor_of_gpu_scalars", """
        losses = [torch.tensor(float(i), device="cuda") for i in range(3)]
        print(torch.tensor(losses), torch.tensor(losses, device="cuda").device)
    """),
    program("pad_sequence_mixed", """
        from torch.nn.utils.rnn import pad_sequence
        pad_sequence([torch.ones(2, device="cuda"), torch.ones(3)])
    """),
    program("equal_mixed", 'print(torch.equal(torch.ones(3, device="cuda"), torch.ones(3)))'),
    program("equal_cpu_first", 'print(torch.equal(torch.ones(3), torch.ones(3, device="cuda")))'),
    program("allclose_mixed", 'print(torch.allclose(torch.ones(3, device="cuda"), torch.ones(3)))'),
    program("assert_close_mixed", """
        torch.testing.assert_close(torch.ones(3, device="cuda"), torch.ones(3))
    """),
    program("assert_close_ignoring_device", """
        torch.testing.assert_close(
            torch.ones(3, device="cuda"), torch.ones(3), check_device=False
        )
        print("close")
    """),
    program("meshgrid_mixed", 'torch.meshgrid(torch.arange(2, device="cuda"), torch.arange(3))'),
]

LINEAR_ALGEBRA = [
    program("matmul_cpu_first", 'torch.ones(3, 3) @ torch.ones(3, 3, device="cuda")'),
    program("mm_mixed", 'torch.mm(torch.ones(2, 3, device="cuda"), torch.ones(3, 2))'),
    program("mv_mixed", 'torch.ones(3, 3, device="cuda") @ torch.ones(3)'),
    program("mv_cpu_matrix", 'torch.ones(3, 3) @ torch.ones(3, device="cuda")'),
    program("bmm_mixed", 'torch.bmm(torch.ones(2, 3, 3, device="cuda"), torch.ones(2, 3, 3))'),
    program("bmm_cpu_first", 'torch.bmm(torch.ones(2, 3, 3), torch.ones(2, 3, 3, device="cuda"))'),
    program("matmul_batched_mixed", 'torch.ones(2, 3, 3, device="cuda") @ torch.ones(3, 3)'),
    program("addmm_bias_on_cpu", """
        a = torch.ones(3, 3, device="cuda")
        torch.addmm(torch.ones(3), a, a)
    """),
    program("addmm_cpu_matrix", """
        a = torch.ones(3, 3, device="cuda")
        torch.addmm(torch.ones(3, device="cuda"), a, torch.ones(3, 3))
    """),
    program("baddbmm_mixed", """
        a = torch.ones(2, 3, 3, device="cuda")
        torch.baddbmm(torch.ones(2, 3, 3), a, a)
    """),
    program("mm_out_on_cpu", """
        a = torch.ones(3, 3, device="cuda")
        torch.mm(a, a, out=torch.empty(3, 3))
    """),
    program("dot_mixed", 'torch.dot(torch.ones(3, device="cuda"), torch.ones(3))'),
    program("dot_cpu_first", 'torch.dot(torch.ones(3), torch.ones(3, device="cuda"))'),
    program("outer_mixed", 'torch.outer(torch.ones(3, device="cuda"), torch.ones(3))'),
    program("einsum_mixed", """
        torch.einsum("ij,jk->ik", torch.ones(2, 3, device="cuda"), torch.ones(3, 2))
    """),
    program("einsum_elementwise_mixed", """
        torch.einsum("i,i->i", torch.ones(3, device="cuda"), torch.ones(3))
    """),
    program("tensordot_mixed", """
        torch.tensordot(torch.ones(2, 3, device="cuda"), torch.ones(3, 2), dims=1)
    """),
    program("cdist_mixed", 'torch.cdist(torch.ones(2, 3, device="cuda"), torch.ones(4, 3))'),
    program("cross_mixed", """
        torch.linalg.cross(torch.ones(3, device="cuda"), torch.ones(3))
    """),
    program("solve_mixed", 'torch.linalg.solve(torch.eye(3, device="cuda"), torch.ones(3))'),
    program("kron_mixed", 'torch.kron(torch.eye(2, device="cuda"), torch.eye(2))'),
]

LAYERS = [
    program("linear_module_on_cpu", 'torch.nn.Linear(3, 3)(torch.ones(2, 3, device="cuda"))'),
    program("linear_vector_input_on_cpu", 'torch.nn.Linear(3, 3).cuda()(torch.ones(3))'),
    program("linear_3d_input_on_cpu", 'torch.nn.Linear(3, 3).cuda()(torch.ones(2, 2, 3))'),
    program("linear_no_bias_mixed", """
        torch.nn.Linear(3, 3, bias=False).cuda()(torch.ones(2, 3))
    """),
    program("linear_bias_left_behind", """
        x, w = torch.ones(2, 3, device="cuda"), torch.ones(3, 3, device="cuda")
        torch.nn.functional.linear(x, w, torch.ones(3))
    """),
    program("sequential_input_on_cpu", """
        net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        net.cuda()(torch.ones(1, 4))
    """),
    program("conv2d_module_on_cpu", """
        torch.nn.Conv2d(3, 4, 3)(torch.ones(1, 3, 8, 8, device="cuda"))
    """),
    program("conv1d_input_on_cpu", 'torch.nn.Conv1d(3, 4, 3).cuda()(torch.ones(1, 3, 8))'),
    program("conv1d_module_on_cpu", """
        torch.nn.Conv1d(3, 4, 3)(torch.ones(1, 3, 8, device="cuda"))
    """),
    program("conv2d_bias_left_behind", """
        x, w = torch.ones(1, 3, 8, 8, device="cuda"), torch.ones(4, 3, 3, 3, device="cuda")
        torch.nn.functional.conv2d(x, w, torch.ones(4))
    """),
    program("conv_transpose_mixed", """
        torch.nn.ConvTranspose2d(3, 4, 3).cuda()(torch.ones(1, 3, 8, 8))
    """),
    program("conv2d_padded_input_on_cpu", """
        torch.nn.Conv2d(3, 4, 3, padding=1, stride=2).cuda()(torch.ones(1, 3, 8, 8))
    """),
    program("batch_norm_input_on_cpu", 'torch.nn.BatchNorm1d(3).cuda()(torch.ones(4, 3))'),
    program("batch_norm_module_on_cpu", """
        torch.nn.BatchNorm1d(3)(torch.rand(4, 3, device="cuda"))
    """),
    program("batch_norm_eval_input_on_cpu", """
        torch.nn.BatchNorm2d(3).cuda().eval()(torch.ones(4, 3, 2, 2))
    """),
    program("layer_norm_input_on_cpu", 'torch.nn.LayerNorm(3).cuda()(torch.ones(4, 3))'),
    program("layer_norm_module_on_cpu", 'torch.nn.LayerNorm(3)(torch.ones(4, 3, device="cuda"))'),
    program("group_norm_mixed", 'torch.nn.GroupNorm(1, 3).cuda()(torch.ones(4, 3, 2))'),
    program("embedding_cpu_index", 'torch.nn.Embedding(5, 2).cuda()(torch.tensor([1]))'),
    program("embedding_module_on_cpu", """
        torch.nn.Embedding(5, 2)(torch.tensor([1], device="cuda"))
    """),
    program("embedding_bag_mixed", """
        torch.nn.EmbeddingBag(5, 2).cuda()(torch.tensor([[1, 2]]))
    """),
    program("lstm_input_on_cpu", 'torch.nn.LSTM(3, 4).cuda()(torch.ones(2, 1, 3))'),
    program("lstm_hidden_on_cpu", """
        lstm = torch.nn.LSTM(3, 4).cuda()
        state = torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)
        lstm(torch.ones(2, 1, 3, device="cuda"), state)
    """),
    program("lstm_module_on_cpu", 'torch.nn.LSTM(3, 4)(torch.ones(2, 1, 3, device="cuda"))'),
    program("gru_input_on_cpu", 'torch.nn.GRU(3, 4).cuda()(torch.ones(2, 1, 3))'),
    program("gru_hidden_on_cpu", """
        torch.nn.GRU(3, 4).cuda()(torch.ones(2, 1, 3, device="cuda"), torch.zeros(1, 1, 4))
    """),
    program("rnn_input_on_cpu", 'torch.nn.RNN(3, 4).cuda()(torch.ones(2, 1, 3))'),
    program("gru_cell_mixed", 'torch.nn.GRUCell(3, 4).cuda()(torch.ones(2, 3))'),
    program("attention_input_on_cpu", """
        x = torch.ones(2, 1, 4)
        torch.nn.MultiheadAttention(4, 2).cuda()(x, x, x)
    """),
    program("sdpa_mixed", """
        q, k = torch.ones(1, 2, 4, 8, device="cuda"), torch.ones(1, 2, 4, 8)
        torch.nn.functional.scaled_dot_product_attention(q, k, k)
    """),
    program("sdpa_mask_on_cpu", """
        q = torch.ones(1, 2, 4, 8, device="cuda")
        mask = torch.ones(4, 4, dtype=torch.bool).tril()
        torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)
    """),
    program("prelu_mixed", 'torch.nn.PReLU().cuda()(torch.ones(3))'),
    program("bilinear_mixed", """
        torch.nn.Bilinear(2, 2, 2).cuda()(torch.ones(1, 2), torch.ones(1, 2))
    """),
    program("grid_sample_mixed", """
        image, grid = torch.ones(1, 1, 4, 4, device="cuda"), torch.zeros(1, 2, 2, 2)
        torch.nn.functional.grid_sample(image, grid, align_corners=False)
    """),
]

LOSSES = [
    program("mse_loss_target_on_cpu", """
        torch.nn.functional.mse_loss(torch.ones(3, device="cuda"), torch.ones(3))
    """),
    program("mse_loss_input_on_cpu", """
        torch.nn.MSELoss()(torch.ones(3), torch.ones(3, device="cuda"))
    """),
    program("l1_loss_mixed", """
        torch.nn.functional.l1_loss(torch.ones(3, device="cuda"), torch.ones(3))
    """),
    program("smooth_l1_mixed", """
        torch.nn.functional.smooth_l1_loss(torch.ones(3, device="cuda"), torch.ones(3))
    """),
    program("cross_entropy_target_on_cpu", """
        logits = torch.ones(3, 4, device="cuda")
        torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2]))
    """),
    program("cross_entropy_logits_on_cpu", """
        target = torch.tensor([0, 1, 2], device="cuda")
        torch.nn.functional.cross_entropy(torch.ones(3, 4), target)
    """),
    program("cross_entropy_weight_on_cpu", """
        logits, target = torch.ones(3, 4).cuda(), torch.tensor([0, 1, 2]).cuda()
        torch.nn.CrossEntropyLoss(weight=torch.ones(4))(logits, target)
    """),
    program("cross_entropy_probabilities_on_cpu", """
        logits = torch.ones(3, 4, device="cuda")
        torch.nn.functional.cross_entropy(logits, torch.full((3, 4), 0.25))
    """),
    program("cross_entropy_image_target_on_cpu", """
        logits = torch.ones(2, 3, 4, 4, device="cuda")
        torch.nn.functional.cross_entropy(logits, torch.zeros(2, 4, 4, dtype=torch.long))
    """),
    program("nll_loss_target_on_cpu", """
        scores = torch.ones(3, 4, device="cuda").log_softmax(1)
        torch.nn.functional.nll_loss(scores, torch.tensor([0, 1, 2]))
    """),
    program("bce_mixed", """
        torch.nn.functional.binary_cross_entropy(torch.full((3,), 0.5).cuda(), torch.ones(3))
    """),
    program("bce_with_logits_mixed", """
        torch.nn.functional.binary_cross_entropy_with_logits(
            torch.zeros(3, device="cuda"), torch.ones(3)
        )
    """),
    program("bce_with_logits_pos_weight_on_cpu", """
        a = torch.zeros(3, 2, device="cuda")
        torch.nn.BCEWithLogitsLoss(pos_weight=torch.ones(2))(a, a)
    """),
    program("kl_div_mixed", """
        p = torch.full((2, 2), 0.5)
        torch.nn.functional.kl_div(p.cuda().log(), p, reduction="batchmean")
    """),
    program("cosine_similarity_mixed", """
        torch.nn.functional.cosine_similarity(torch.ones(2, 3, device="cuda"), torch.ones(2, 3))
    """),
]

MODULES_AND_GRADIENTS = [
    program("plain_tensor_attribute_left_behind", """
        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = torch.ones(3)

            def forward(self, x):
                return x * self.scale

        Scale().cuda()(torch.ones(2, 3, device="cuda"))
    """),
    program("layers_in_a_list_left_behind", """
        class Stack(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = [torch.nn.Linear(3, 3)]

            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return x

        net = Stack().cuda()
        print(len(list(net.parameters())))
        net(torch.ones(2, 3, device="cuda"))
    """),
    program("mask_made_in_forward_on_cpu", """
        class Causal(torch.nn.Module):
            def forward(self, scores):
                mask = torch.tril(torch.ones(scores.shape[-2:], dtype=torch.bool))
                return scores.masked_fill(~mask, float("-inf"))

        Causal().cuda()(torch.ones(2, 2, device="cuda"))
    """),
    program("hidden_state_made_in_forward_on_cpu", """
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = torch.nn.RNNCell(3, 4)

            def forward(self, x):
                return self.cell(x, torch.zeros(x.shape[0], 4))

        Net().cuda()(torch.ones(2, 3, device="cuda"))
    """),
    program("positions_made_on_inputs_device", """
        embed = torch.nn.Embedding(8, 2).cuda()
        x = torch.zeros(3, 5, dtype=torch.long, device="cuda")
        print(embed(torch.arange(x.shape[1], device=x.device)).shape)
    """),
    program("half_the_model_moved", """
        net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
        net[0].cuda()
        net(torch.ones(1, 3, device="cuda"))
    """),
    program("backward_gradient_on_cpu", """
        x = torch.ones(3, device="cuda", requires_grad=True)
        (x * 2).backward(torch.ones(3))
    """),
    program("autograd_grad_outputs_on_cpu", """
        x = torch.ones(3, device="cuda", requires_grad=True)
        torch.autograd.grad(x * 2, x, grad_outputs=torch.ones(3))
    """),
    program("assign_cpu_gradient", """
        p = torch.nn.Parameter(torch.ones(3, device="cuda"))
        p.grad = torch.ones(3)
    """),
    program("function_returns_cpu_gradient", """
        class Identity(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return grad.cpu()

        x = torch.ones(3, device="cuda", requires_grad=True)
        Identity.apply(x).sum().backward()
    """),
    program("gradient_crosses_devices", """
        x = torch.ones(3, requires_grad=True)
        (x.cuda() * 2).sum().backward()
        print(x.grad, x.grad.device)
    """),
    program("optimizer_with_parameters_on_both", """
        net = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2).cuda()})
        adam = torch.optim.Adam(net.parameters(), lr=0.1)
        net["b"](net["a"](torch.ones(1, 2)).cuda()).sum().backward()
        adam.step()
        print({name: str(p.grad.device) for name, p in net.named_parameters()})
    """),
    program("adagrad_made_before_the_move", """
        layer = torch.nn.Linear(3, 3)
        adagrad = torch.optim.Adagrad(layer.parameters())
        layer.cuda()
        layer(torch.ones(1, 3, device="cuda")).sum().backward()
        adagrad.step()
    """),
    program("adam_made_before_the_move", """
        layer = torch.nn.Linear(3, 3)
        adam = torch.optim.Adam(layer.parameters())
        before = layer.weight.detach().clone()
        layer.cuda()
        layer(torch.ones(1, 3, device="cuda")).sum().backward()
        adam.step()
        print(torch.equal(before, layer.weight.cpu()), adam.state[layer.weight]["exp_avg"].device)
    """),
    program("adam_moved_after_a_step", """
        layer = torch.nn.Linear(3, 3)
        adam = torch.optim.Adam(layer.parameters(), foreach=False)
        layer(torch.ones(1, 3)).sum().backward()
        adam.step()
        layer.cuda()
        adam.step()
    """),
    program("sgd_momentum_moved_after_a_step", """
        layer = torch.nn.Linear(3, 3)
        sgd = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9, foreach=False)
        layer(torch.ones(1, 3)).sum().backward()
        sgd.step()
        layer.cuda()
        sgd.step()
    """),
    program("foreach_add_mixed", """
        torch._foreach_add([torch.ones(2, device="cuda")], [torch.ones(2)])
    """),
    program("foreach_mul_scalar_both_devices", """
        print(torch._foreach_mul([torch.ones(2, device="cuda"), torch.ones(2)], 2.0))
    """),
    program("clip_grad_norm_both_devices", """
        a = torch.nn.Parameter(torch.zeros(1, device="cuda"))
        b = torch.nn.Parameter(torch.zeros(1))
        a.grad, b.grad = torch.full_like(a, 3.0), torch.full_like(b, 4.0)
        norm = torch.nn.utils.clip_grad_norm_([a, b], 100.0)
        print(round(norm.item(), 4), norm.device)
    """),
    program("normal_distribution_mixed", """
        torch.distributions.Normal(torch.zeros(2), torch.ones(2, device="cuda")).sample()
    """),
    program("copy_between_devices_is_allowed", """
        a, b = torch.zeros(3), torch.arange(3.0, device="cuda")
        a.copy_(b)
        b.copy_(torch.ones(3))
        print(a, b)
    """),
    program("set_data_to_other_device", """
        x = torch.ones(2)
        x.data = torch.zeros(2, device="cuda")
        print(x, x.device)
    """),
    program("view_as_and_expand_as_do_not_mind", """
        a, b = torch.ones(3, device="cuda"), torch.zeros(3, 1)
        print(a.view_as(b).shape, a.expand_as(torch.zeros(2, 3)).shape, a.device)
    """),
    program("type_as_moves", """
        a = torch.ones(2, dtype=torch.float64)
        print(a.type_as(torch.zeros(1, device="cuda")))
    """),
]

TWO_GPUS = [
    program("matmul_two_gpus", """
        torch.ones(3, 3, device="cuda:0") @ torch.ones(3, 3, device="cuda:1")
    """, 2),
    program("linear_two_gpus", """
        torch.nn.Linear(3, 3).to("cuda:1")(torch.ones(2, 3, device="cuda:0"))
    """, 2),
    program("cat_two_gpus", """
        torch.cat([torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")])
    """, 2),
    program("iadd_two_gpus", """
        a = torch.ones(3, device="cuda:1")
        a += torch.ones(3, device="cuda:0")
    """, 2),
    program("index_two_gpus", """
        torch.ones(3, device="cuda:0")[torch.tensor([1], device="cuda:1")]
    """, 2),
    program("embedding_two_gpus", """
        torch.nn.Embedding(5, 2).to("cuda:1")(torch.tensor([1], device="cuda:0"))
    """, 2),
    program("conv2d_two_gpus", """
        torch.nn.Conv2d(3, 4, 3).to("cuda:1")(torch.ones(1, 3, 8, 8, device="cuda:0"))
    """, 2),
    program("batch_norm_two_gpus", """
        torch.nn.BatchNorm1d(3).to("cuda:1")(torch.ones(4, 3, device="cuda:0"))
    """, 2),
    program("lstm_two_gpus", """
        torch.nn.LSTM(3, 4).to("cuda:1")(torch.ones(2, 1, 3, device="cuda:0"))
    """, 2),
    program("cross_entropy_two_gpus", """
        logits, target = torch.ones(3, 4, device="cuda:0"), torch.zeros(3, device="cuda:1").long()
        torch.nn.functional.cross_entropy(logits, target)
    """, 2),
    program("equal_two_gpus", """
        print(torch.equal(torch.ones(3, device="cuda:0"), torch.ones(3, device="cuda:1")))
    """, 2),
    program("where_two_gpus", """
        a = torch.ones(3, device="cuda:0")
        torch.where(a > 0, a, torch.ones(3, device="cuda:1"))
    """, 2),
    program("scalar_two_gpus", """
        torch.ones(3, device="cuda:0") * torch.tensor(2.0, device="cuda:1")
    """, 2),
    program("foreach_add_two_gpus", """
        torch._foreach_add([torch.ones(2, device="cuda:0")], [torch.ones(2, device="cuda:1")])
    """, 2),
    program("copy_two_gpus_is_allowed", """
        a, b = torch.zeros(3, device="cuda:0"), torch.arange(3.0, device="cuda:1")
        a.copy_(b)
        print(a, b.to("cuda:0") + a)
    """, 2),
    program("gradient_crosses_two_gpus", """
        x = torch.ones(3, device="cuda:0", requires_grad=True)
        y = (x * 2).to("cuda:1")
        (y * y).sum().backward()
        print(y.device, x.grad)
    """, 2),
    program("model_split_over_two_gpus", """
        a, b = torch.nn.Linear(4, 8).to("cuda:0"), torch.nn.Linear(8, 2).to("cuda:1")
        out = b(a(torch.ones(3, 4, device="cuda:0")).relu().to("cuda:1"))
        out.sum().backward()
        print(out.device, a.weight.grad.device, b.weight.grad.device)
    """, 2),
    program("adam_over_two_gpus", """
        a = torch.nn.Parameter(torch.ones(2, device="cuda:0"))
        b = torch.nn.Parameter(torch.ones(2, device="cuda:1"))
        adam = torch.optim.Adam([a, b], lr=0.5)
        (a.sum() + b.sum().to("cuda:0")).backward()
        adam.step()
        print(a.detach(), b.detach())
    """, 2),
    program("clip_grad_norm_two_gpus", """
        a = torch.nn.Parameter(torch.zeros(1, device="cuda:0"))
        b = torch.nn.Parameter(torch.zeros(1, device="cuda:1"))
        a.grad, b.grad = torch.full_like(a, 3.0), torch.full_like(b, 4.0)
        norm = torch.nn.utils.clip_grad_norm_([a, b], 1.0)
        print(round(norm.item(), 4), norm.device, a.grad.device, b.grad.device)
    """, 2),
    program("default_device_is_not_the_tensors", """
        torch.cuda.set_device(1)
        x = torch.ones(2, device="cuda:0")
        x + torch.zeros(2, device="cuda")
    """, 2),
]

PROGRAMS = [
    *ELEMENTWISE,
    *SCALARS,
    *SELECTING,
    *JOINING,
    *LINEAR_ALGEBRA,
    *LAYERS,
    *LOSSES,
    *MODULES_AND_GRADIENTS,
    *TWO_GPUS,
]
