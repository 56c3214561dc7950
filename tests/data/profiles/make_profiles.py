"""Writes the SYNTHETIC profiles in this folder: tables of kernels as rocprof, rocprofv3, hipprof and nsys lay them out.

No device was profiled. The columns are those that the profilers write (sources: docs/reference/import.md), the kernel
names are those of the engines, the times are made up: kernel k of step s takes BASE[k] + 10 * s ns, kernels of a step are
500 ns apart, steps 20000 ns. Tests know these figures.

Usage: make_profiles.py [--check]    --check: say whether the files are what this script would write
"""

import csv
import io
import json
import pathlib
import sys

LAYERS = 4  # of dculab-tiny
START = 1_000_000_000_000
GAP, STEP_GAP, SLOWER = 500, 20_000, 10

# (kernel, ns) before the layers, in a layer, after them, and between steps.
DCULAB = (
    [("embedding_kernel", 6000)],
    [
        ("void rms_norm_kernel<__half, 64>(RmsNormArguments)", 7000),
        ("void gemv_kernel<__half, 64>(MatmulArguments)", 20000),
        ("void rotary_embedding_kernel<__half, 64>(RotaryArguments)", 4000),
        ("void reshape_and_cache_kernel<__half, __half>(CacheArguments)", 5000),
        ("void paged_attention_kernel<__half, 32, 16, 64>(PagedAttentionArguments)", 30000),
        ("void paged_attention_combine_kernel<__half, 32, 64>(PagedAttentionArguments)", 6000),
        ("void gemv_kernel<__half, 64>(MatmulArguments)", 15000),
        ("void rms_norm_kernel<__half, 64>(RmsNormArguments)", 7000),
        ("void gemv_kernel<__half, 64>(MatmulArguments)", 40000),
        ("void split_k_sum_kernel<__half>(SplitArguments)", 3000),
        ("void silu_and_mul_kernel<__half>(ActivationArguments)", 5000),
        ("void gemv_kernel<__half, 64>(MatmulArguments)", 25000),
    ],
    [("void rms_norm_kernel<__half, 64>(RmsNormArguments)", 7000), ("void gemv_kernel<__half, 64>(MatmulArguments)", 60000)],
    [("argmax_kernel", 4000), ("__amd_rocclr_copyBuffer", 2000)],
)

CIJK = "Cijk_Alik_Bljk_HHS_BH_MT64x32x32_SE_K1"
VLLM_ROCM = (
    [("void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::Half, long, unsigned int, 2, 2, -2, true>(...)", 6000)],
    [
        ("void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, long, c10::Half*, c10::Half const*, float, int, int)", 7000),
        (CIJK, 20000),
        ("void vllm::rotary_embedding_kernel<c10::Half, true>(long const*, c10::Half*, c10::Half*)", 4000),
        ("void vllm::reshape_and_cache_kernel<unsigned short, unsigned short, (vllm::Fp8KVCacheDataType)0>(unsigned short const*)", 5000),
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<_Float16, _Float16, (vllm::Fp8KVCacheDataType)0, _Float16, 16, 32, 256, false, 1>(int)", 30000),
        ("void paged_attention_ll4mi_reduce_kernel<_Float16, _Float16, 32, 32, 256, 256, 1>(_Float16*)", 6000),
        (CIJK, 15000),
        ("void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, long, c10::Half*, c10::Half const*, float, int, int)", 7000),
        (CIJK, 43000),
        ("void vllm::act_and_mul_kernel<c10::Half, &(c10::Half vllm::silu_kernel<c10::Half>(c10::Half const&)), true>(c10::Half*)", 5000),
        (CIJK, 25000),
    ],
    [("void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, long, c10::Half*, c10::Half const*, float, int, int)", 7000), (CIJK, 60000)],
    [("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float> > >(float)", 4000)],
)

# An older vLLM on a DCU: GPTQ weights, the embedding under a name that says nothing, K and V written on their own.
GPTQ = "void vllm::gptq::gemm_half_q_half_gptq_4bit_kernel<true, 1>(__half const*, unsigned int const*)"
VLLM_DCU = (
    [],
    [
        ("void vllm::rms_norm_kernel<c10::Half>(c10::Half*, c10::Half const*, c10::Half const*, float, int, int)", 7000),
        (GPTQ, 20000),
        ("void vllm::rotary_embedding_kernel<c10::Half, true>(long const*, c10::Half*)", 4000),
        ("void vllm::reshape_and_cache_kernel<unsigned short, unsigned short, 0>(unsigned short const*)", 5000),
        ("void vllm::paged_attention_v1_kernel<unsigned short, unsigned short, 32, 16, 128, 0, false>(unsigned short*)", 36000),
        (GPTQ, 15000),
        ("void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, c10::Half*)", 7000),
        (GPTQ, 43000),
        ("void vllm::act_and_mul_kernel<c10::Half, &c10::Half vllm::silu_kernel<c10::Half>(c10::Half const&)>(c10::Half*)", 5000),
        (GPTQ, 25000),
    ],
    [("void vllm::fused_add_rms_norm_kernel<c10::Half, 8>(c10::Half*, c10::Half*)", 7000), (CIJK, 60000)],
    [("void gather_rows(half const*)", 3000)],
)

CUTLASS = "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn"
VLLM_CUDA = (
    [("void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)", 6000)],
    [
        ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(T1 *, T1 *, const T1 *, float, int, int)", 7000),
        (CUTLASS, 20000),
        ("void vllm::rotary_embedding_kernel<c10::BFloat16, (bool)1>(const long *, T1 *, T1 *)", 4000),
        ("void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, (vllm::Fp8KVCacheDataType)0>(const T1 *)", 5000),
        ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<32, 64, 128, 4, 0, 0, cutlass::bfloat16_t>, 0, 0>(flash::Flash_fwd_params)", 30000),
        ("void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<32, 64, 128, 4>, 4, 1>(flash::Flash_fwd_params)", 6000),
        (CUTLASS, 15000),
        ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(T1 *, T1 *, const T1 *, float, int, int)", 7000),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(T1::Params)", 38000),
        ("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(cublasLt::cublasSplitKParams<T6>)", 5000),
        ("void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(T1 *, const T1 *, int)", 5000),
        (CUTLASS, 25000),
    ],
    [("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(T1 *, T1 *, const T1 *, float, int, int)", 7000), (CUTLASS, 60000)],
    [("void at::native::<unnamed>::cunn_SoftMaxForward<4, float, float, float>(float *)", 4000), ("[CUDA memcpy Device-to-Host]", 1500)],
)


def kernels(engine, steps):
    """(name, begin, end) of every kernel of `steps` steps."""
    before, layer, after, between = engine
    now = START
    for step in range(steps):
        for name, base in before + layer * LAYERS + after + between:
            end = now + base + SLOWER * step
            yield name, now, end
            now = end + GAP
        now += STEP_GAP - GAP


def table(header, rows, quoting=csv.QUOTE_MINIMAL, line_end="\n"):
    text = io.StringIO()
    writer = csv.writer(text, quoting=quoting, lineterminator=line_end)
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def rocprof(engine, steps):
    header = "Index KernelName gpu-id queue-id grd wgr DispatchNs BeginNs EndNs CompleteNs DurationNs".split()
    rows = [(i, f"{name} [clone .kd]", 0, 0, 65536, 256, b - 900, b, e, e + 700, e - b)
            for i, (name, b, e) in enumerate(kernels(engine, steps))]
    return table(header, rows, csv.QUOTE_NONNUMERIC)


def rocprofv3(engine, steps):
    header = ("Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id "
              "Start_Timestamp End_Timestamp").split()
    rows = [("KERNEL_DISPATCH", "Agent 4", 1, 1, 852831, i + 1, 10, name, i + 1, b, e)
            for i, (name, b, e) in enumerate(kernels(engine, steps))]
    return table(header, rows, csv.QUOTE_NONNUMERIC, "\r\n")


def hipprof_pmc(engine, steps):
    header = "Index KernelName grd wgr lds scr GRBM_GUI_ACTIVE BeginNs EndNs".split()
    rows = [(i, name, 65536, 256, 0, 0, 1500, b, e) for i, (name, b, e) in enumerate(kernels(engine, steps))]
    return table(header, rows)


def hipprof_database(engine, steps):
    """HIPOPS of the database, as the SELECT in docs/howto/import-a-profile.md prints it."""
    return table(["KernelName", "BeginNs", "EndNs", "dev_id"], [(n, b, e, 0) for n, b, e in kernels(engine, steps)])


def hipprof_json(engine, steps):
    events = [{"ph": "M", "name": "process_name", "pid": 3, "args": {"name": "Stream on Device 0"}}]
    for i, (name, b, e) in enumerate(kernels(engine, steps)):
        events.append({"ph": "X", "cat": "HIPOPS", "name": name, "pid": 3, "tid": "Stream0", "ts": (b - START) / 1000,
                       "dur": (e - b) / 1000,
                       "args": {"BeginNs": str(b), "EndNs": str(e), "devId": 0, "index": i, "name": name}})
    return json.dumps({"traceEvents": events}, separators=(",", ":")) + "\n"


def nsys(engine, steps):
    header = ("Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
              "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name").split(",")
    rows = [(b, e - b, i, 1, 1, 1, 128, 1, 1, 64, 0, 0, "", "", "", "", "NVIDIA A100-SXM4-80GB (0)", 1, "", 7, name)
            for i, (name, b, e) in enumerate(kernels(engine, steps))]
    return ("\ufeff\nNOTICE: Existing SQLite export found: run.sqlite\n\n"
            "Processing [run.sqlite] with [cuda_gpu_trace.py]... \n" + table(header, rows))


def main():
    folder = pathlib.Path(__file__).parent
    profiles = {
        "rocprof_dculab.csv": rocprof(DCULAB, 12),
        "rocprofv3_vllm.csv": rocprofv3(VLLM_ROCM, 4),
        "hipprof_pmc_vllm.csv": hipprof_pmc(VLLM_DCU, 4),
        "hipprof_database_vllm.csv": hipprof_database(VLLM_DCU, 4),
        "hipprof_trace_vllm.json": hipprof_json(VLLM_DCU, 4),
        "nsys_vllm.csv": nsys(VLLM_CUDA, 4),
    }
    if "--check" in sys.argv[1:]:
        stale = [name for name, text in profiles.items() if (folder / name).read_bytes() != text.encode()]
        sys.exit(f"not what make_profiles.py writes: {', '.join(stale)}" if stale else 0)
    for name, text in profiles.items():
        (folder / name).write_bytes(text.encode())


if __name__ == "__main__":
    main()
