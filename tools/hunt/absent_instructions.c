/* Instructions of AMX, of AVX_VNNI and a few of AVX512_FP16, computed where a processor lacks them.
 *
 * Preloaded by tools/hunt/absent_instructions.py. Each such instruction traps (SIGILL); the handler decodes
 * it, computes what Intel's manual says, and goes on behind it. In the copy of oneDNN and of our
 * extension that runs, `cpuid` is replaced by `ud2` and `xgetbv` by `ud0`, so that what the processor
 * says of itself is computed here, too. ABSENT_INSTRUCTIONS names the features that appear: amx,
 * avx_vnni, fp16.
 *
 * Tiles are kept for each thread. What the manual makes a fault (tiles of sizes that do not match, a
 * tile beyond its configuration) ends the process, as it would. bf16 is summed in the manual's order.
 */
#define _GNU_SOURCE
#include <cpuid.h>
#include <errno.h>
#include <immintrin.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ucontext.h>
#include <unistd.h>

enum { rows_most = 16, row_bytes = 64, tiles = 8 };
enum { fx_xmm = 160, fx_software = 464, xstate_bv = 512 };
enum { component_ymm = 2, component_mask = 5, component_zmm = 6, component_high = 7 };

typedef struct {
    uint8_t palette, start_row;
    uint8_t reserved[14];
    uint16_t colsb[tiles];
    uint8_t reserved_too[16];
    uint8_t rows[tiles];
    uint8_t reserved_last[8];
} TileConfig;

static _Thread_local TileConfig config __attribute__((tls_model("initial-exec"), aligned(64)));
static _Thread_local uint8_t tile[tiles][rows_most][row_bytes]
        __attribute__((tls_model("initial-exec"), aligned(64)));

static unsigned offset_of[8]; /* of components in a signal's XSAVE area */
static int has_amx, has_vex_vnni, has_fp16;

/* --- what an instruction names ------------------------------------------------------------------ */

static const int greg[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                             REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

typedef struct {
    const uint8_t* next; /* behind what was read */
    int mod, reg, rm;
    int reg_high, rm_high, index_high; /* the prefix's bits: R, B, X, each as 8 or 0 */
    int64_t stride;                    /* of a tile's rows: the index register, scaled */
    uint8_t* at;                       /* of memory operands; a tile's without its index */
} Operands;

static int64_t value(const ucontext_t* context, int number) {
    return context->uc_mcontext.gregs[greg[number]];
}

/* Reads ModRM, SIB and displacement. `scaled`: what a displacement of a byte counts (EVEX). */
static void read_operands(Operands* o, const ucontext_t* context, int scaled) {
    const uint8_t modrm = *o->next++;
    o->mod = modrm >> 6;
    o->reg = ((modrm >> 3) & 7) | o->reg_high;
    o->rm = (modrm & 7) | o->rm_high;
    o->stride = 0;
    o->at = NULL;
    if (o->mod == 3) return;
    int64_t base = 0;
    int is_relative = 0, has_base = 1;
    if ((modrm & 7) == 4) {
        const uint8_t sib = *o->next++;
        const int index = ((sib >> 3) & 7) | o->index_high;
        if (index != 4) o->stride = value(context, index) * (INT64_C(1) << (sib >> 6));
        has_base = !((sib & 7) == 5 && o->mod == 0);
        if (has_base) base = value(context, (sib & 7) | o->rm_high);
    } else if ((modrm & 7) == 5 && o->mod == 0) {
        is_relative = 1;
    } else {
        base = value(context, o->rm);
    }
    int32_t displacement = 0;
    if (o->mod == 1) {
        displacement = (int8_t)*o->next++ * scaled;
    } else if (o->mod == 2 || is_relative || !has_base) {
        memcpy(&displacement, o->next, 4);
        o->next += 4;
    }
    if (is_relative) base = (int64_t)(intptr_t)o->next; /* no immediate follows in any of these */
    o->at = (uint8_t*)(intptr_t)(base + displacement);
}

/* --- vector registers of the interrupted thread --------------------------------------------------- */

static uint8_t* area(const ucontext_t* context) { return (uint8_t*)context->uc_mcontext.fpregs; }

/* A component in its initial state is all zeros, whatever lies in memory. */
static uint8_t* component(const ucontext_t* context, int number, size_t bytes) {
    uint8_t* const xsave = area(context);
    uint64_t present;
    memcpy(&present, xsave + xstate_bv, 8);
    uint8_t* const at = xsave + offset_of[number];
    if ((present & (UINT64_C(1) << number)) == 0) {
        memset(at, 0, bytes);
        present |= UINT64_C(1) << number;
        memcpy(xsave + xstate_bv, &present, 8);
    }
    return at;
}

static uint8_t* lane(const ucontext_t* context, int reg, int which) {
    if (reg >= 16) return component(context, component_high, 1024) + (reg - 16) * 64 + which * 16;
    if (which == 0) return area(context) + fx_xmm + reg * 16;
    if (which == 1) return component(context, component_ymm, 256) + reg * 16;
    return component(context, component_zmm, 512) + reg * 32 + (which - 2) * 16;
}

static void get_vector(const ucontext_t* context, int reg, void* into, int bytes) {
    for (int i = 0; i * 16 < bytes; ++i)
        memcpy((uint8_t*)into + i * 16, lane(context, reg, i), bytes - i * 16 < 16 ? bytes - i * 16 : 16);
}

/* What is above `bytes` becomes 0. */
static void set_vector(const ucontext_t* context, int reg, const void* from, int bytes) {
    uint8_t whole[64] = {0};
    memcpy(whole, from, (size_t)bytes);
    for (int i = 0; i < 4; ++i)
        memcpy(lane(context, reg, i), whole + i * 16, 16);
}

static uint64_t get_mask(const ucontext_t* context, int number) {
    uint64_t mask;
    if (number == 0) return ~UINT64_C(0);
    memcpy(&mask, component(context, component_mask, 64) + number * 8, 8);
    return mask;
}

/* --- tiles ------------------------------------------------------------------------------------------ */

static int is_configured(int number) {
    return number < tiles && config.palette == 1 && config.rows[number] && config.colsb[number];
}

static int load_config(const uint8_t* from) {
    TileConfig read;
    memcpy(&read, from, sizeof read);
    if (read.palette > 1) return 0;
    if (read.palette == 0) {
        memset(&config, 0, sizeof config);
        return 1;
    }
    for (int i = 0; i < tiles; ++i)
        if (read.rows[i] > rows_most || read.colsb[i] > row_bytes || !read.rows[i] != !read.colsb[i]) return 0;
    config = read;
    memset(tile, 0, sizeof tile);
    return 1;
}

static int load_tile(int number, const Operands* o) {
    if (!is_configured(number)) return 0;
    uint8_t rows[rows_most][row_bytes] = {{0}};
    for (int row = config.start_row; row < config.rows[number]; ++row)
        memcpy(rows[row], o->at + row * o->stride, config.colsb[number]);
    memcpy(tile[number], rows, sizeof rows);
    config.start_row = 0;
    return 1;
}

static int store_tile(int number, const Operands* o) {
    if (!is_configured(number)) return 0;
    for (int row = config.start_row; row < config.rows[number]; ++row)
        memcpy(o->at + row * o->stride, tile[number][row], config.colsb[number]);
    config.start_row = 0;
    return 1;
}

/* dst (M x N) += a (M x K) · b (K x N), of groups of four bytes. */
static int do_match(int dst, int a, int b) {
    if (!is_configured(dst) || !is_configured(a) || !is_configured(b)) return 0;
    if (dst == a || dst == b || a == b) return 0;
    return config.colsb[dst] % 4 == 0 && config.colsb[a] % 4 == 0 && config.colsb[b] % 4 == 0 &&
           config.rows[a] == config.rows[dst] && config.colsb[b] == config.colsb[dst] &&
           config.colsb[a] / 4 == config.rows[b];
}

/* As 16 bits, so that one loop serves all four signs: (rows) x 64. */
static void widen(int16_t wide[rows_most][row_bytes], int number, int is_signed) {
    for (int row = 0; row < rows_most; ++row)
        for (int i = 0; i < row_bytes; ++i)
            wide[row][i] = is_signed ? (int8_t)tile[number][row][i] : tile[number][row][i];
}

static int multiply_bytes(int dst, int a, int b, int a_is_signed, int b_is_signed) {
    if (!do_match(dst, a, b)) return 0;
    int16_t left[rows_most][row_bytes], right[rows_most][row_bytes];
    widen(left, a, a_is_signed);
    widen(right, b, b_is_signed);
    const int columns = config.colsb[dst] / 4, depth = config.colsb[a] / 4;
    for (int m = 0; m < config.rows[dst]; ++m) {
        uint32_t sums[16];
        memcpy(sums, tile[dst][m], sizeof sums);
        for (int k = 0; k < depth; ++k)
            for (int n = 0; n < 16; ++n) {
                int32_t sum = 0;
                for (int i = 0; i < 4; ++i)
                    sum += left[m][4 * k + i] * right[k][4 * n + i];
                sums[n] += (uint32_t)sum;
            }
        memset(tile[dst][m], 0, row_bytes);
        memcpy(tile[dst][m], sums, (size_t)columns * 4);
    }
    return 1;
}

static float as_float(const uint8_t* at) {
    uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float number;
    memcpy(&number, &bits, 4);
    return number;
}

static int multiply_bf16(int dst, int a, int b) {
    if (!do_match(dst, a, b)) return 0;
    const unsigned before = _mm_getcsr();
    _mm_setcsr(0x9fc0); /* denormals are zeros, results too, ties to even, nothing raised */
    const int columns = config.colsb[dst] / 4, depth = config.colsb[a] / 4;
    for (int m = 0; m < config.rows[dst]; ++m) {
        float even[16] = {0}, odd[16] = {0}, sums[16];
        for (int k = 0; k < depth; ++k)
            for (int n = 0; n < columns; ++n) {
                const uint8_t* const x = &tile[a][m][4 * k];
                const uint8_t* const y = &tile[b][k][4 * n];
                even[n] = __builtin_fmaf(as_float(x), as_float(y), even[n]);
                odd[n] = __builtin_fmaf(as_float(x + 2), as_float(y + 2), odd[n]);
            }
        memcpy(sums, tile[dst][m], sizeof sums);
        for (int n = 0; n < columns; ++n)
            sums[n] += even[n] + odd[n];
        memset(tile[dst][m], 0, row_bytes);
        memcpy(tile[dst][m], sums, (size_t)columns * 4);
    }
    _mm_setcsr(before);
    return 1;
}

/* --- VEX: tiles, and the 256-bit VNNI --------------------------------------------------------------- */

static int do_tile(const Operands* o, int opcode, int pp, int vvvv) {
    enum { np, p66, pf3, pf2 };
    const int is_register = o->mod == 3;
    switch (opcode) {
        case 0x49:
            if (is_register && pp == np && o->reg == 0 && o->rm == 0) {
                memset(&config, 0, sizeof config);
                return 1;
            }
            if (is_register && pp == pf2) {
                if (!is_configured(o->reg)) return 0;
                memset(tile[o->reg], 0, sizeof tile[0]);
                return 1;
            }
            if (!is_register && pp == np) return load_config(o->at + o->stride);
            if (!is_register && pp == p66) {
                memcpy(o->at + o->stride, &config, sizeof config);
                return 1;
            }
            return 0;
        case 0x4b:
            if (is_register || pp == np) return 0;
            return pp == pf3 ? store_tile(o->reg, o) : load_tile(o->reg, o);
        case 0x5c: return is_register && pp == pf3 && multiply_bf16(o->reg, o->rm, vvvv);
        case 0x5e:
            if (!is_register) return 0;
            return multiply_bytes(o->reg, o->rm, vvvv, pp == pf2 || pp == pf3, pp == pf2 || pp == p66);
        default: return 0;
    }
}

static int32_t clamped(int64_t sum) {
    return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int32_t)sum;
}

static int do_vnni(const ucontext_t* context, const Operands* o, int opcode, int vvvv, int bytes) {
    uint8_t a[32], b[32], sums[32];
    get_vector(context, vvvv, a, bytes);
    if (o->mod == 3) get_vector(context, o->rm, b, bytes);
    else memcpy(b, o->at + o->stride, (size_t)bytes);
    get_vector(context, o->reg, sums, bytes);
    for (int i = 0; i < bytes; i += 4) {
        int32_t before;
        int64_t sum = 0;
        memcpy(&before, sums + i, 4);
        if (opcode < 0x52) {
            for (int j = i; j < i + 4; ++j)
                sum += (int)a[j] * (int8_t)b[j];
        } else {
            for (int j = i; j < i + 4; j += 2) {
                int16_t x, y;
                memcpy(&x, a + j, 2);
                memcpy(&y, b + j, 2);
                sum += (int64_t)x * y;
            }
        }
        const int32_t after = (opcode & 1) != 0 ? clamped(before + sum) : (int32_t)(uint32_t)(before + sum);
        memcpy(sums + i, &after, 4);
    }
    set_vector(context, o->reg, sums, bytes);
    return 1;
}

static int do_vex(const ucontext_t* context, Operands* o) {
    const uint8_t* const prefix = o->next;
    const int map = prefix[1] & 31, pp = prefix[2] & 3, wide = prefix[2] >> 7, l = (prefix[2] >> 2) & 1;
    const int vvvv = ~(prefix[2] >> 3) & 15, opcode = prefix[3];
    if (map != 2 || wide) return 0;
    o->reg_high = prefix[1] & 0x80 ? 0 : 8;
    o->index_high = prefix[1] & 0x40 ? 0 : 8;
    o->rm_high = prefix[1] & 0x20 ? 0 : 8;
    o->next += 4;
    read_operands(o, context, 1);
    if (has_vex_vnni && opcode >= 0x50 && opcode <= 0x53 && pp == 1)
        return do_vnni(context, o, opcode, vvvv, l ? 32 : 16);
    return has_amx && l == 0 && do_tile(o, opcode, pp, vvvv);
}

/* --- EVEX: what kernels need of AVX512_FP16 ----------------------------------------------------------- */

static int do_evex(const ucontext_t* context, Operands* o) {
    const uint8_t* const p = o->next;
    const int map = p[1] & 7, pp = p[2] & 3, broadcast = (p[3] >> 4) & 1, zeroing = p[3] >> 7;
    const int opcode = p[4], length = (p[3] >> 5) & 3;
    const uint64_t mask = get_mask(context, p[3] & 7);
    if (!has_fp16) return 0;
    const int reg_extra = p[1] & 0x10 ? 0 : 16, is_memory = (p[5] >> 6) != 3;
    const int rm_extra = !is_memory && !(p[1] & 0x40) ? 16 : 0;
    o->reg_high = p[1] & 0x80 ? 0 : 8;
    o->index_high = p[1] & 0x40 ? 0 : 8;
    o->rm_high = p[1] & 0x20 ? 0 : 8;
    o->next += 5;
    const int to_f32 = opcode == 0x13 && map == 6, to_f16 = opcode == 0x1d && map == 5;
    if (to_f32 || to_f16) {
        if (pp != 1 && pp != 0) return 0;
        const int is_scalar = pp == 0, count = is_scalar ? 1 : (16 << length) / 4;
        const int from_bytes = to_f32 ? 2 : 4, to_bytes = 6 - from_bytes;
        if (length == 3 || (broadcast && !is_memory)) return 0; /* embedded rounding is not used */
        read_operands(o, context, broadcast || is_scalar ? from_bytes : count * from_bytes);
        const int reg = o->reg | reg_extra, rm = o->rm | rm_extra;
        uint8_t from[64] = {0}, to[64];
        if (!is_memory) get_vector(context, rm, from, 64);
        for (int i = 0; is_memory && i < count; ++i) /* what is masked is not read */
            if (mask >> i & 1) memcpy(from + i * from_bytes, o->at + o->stride + (broadcast ? 0 : i * from_bytes), from_bytes);
        get_vector(context, reg, to, 64);
        if (is_scalar) get_vector(context, (~(p[2] >> 3) & 15) | (p[3] & 8 ? 0 : 16), to, 16);
        for (int i = 0; i < count; ++i) {
            uint8_t* const at = to + i * to_bytes;
            if (!(mask >> i & 1)) {
                if (zeroing) memset(at, 0, to_bytes);
                continue;
            }
            if (to_f32) {
                uint16_t half;
                memcpy(&half, from + 2 * i, 2);
                const float number = _cvtsh_ss(half);
                memcpy(at, &number, 4);
            } else {
                float number;
                memcpy(&number, from + 4 * i, 4);
                const uint16_t half = _cvtss_sh(number, _MM_FROUND_TO_NEAREST_INT);
                memcpy(at, &half, 2);
            }
        }
        set_vector(context, reg, to, is_scalar ? 16 : count * to_bytes);
        return 1;
    }
    if (map == 5 && pp == 1 && (opcode == 0x6e || opcode == 0x7e)) { /* vmovw */
        read_operands(o, context, 2);
        const int reg = o->reg | reg_extra;
        uint8_t word[16] = {0};
        if (opcode == 0x6e) {
            const int64_t low = is_memory ? 0 : value(context, o->rm);
            memcpy(word, is_memory ? (const void*)(o->at + o->stride) : (const void*)&low, 2);
            set_vector(context, reg, word, 16);
        } else {
            get_vector(context, reg, word, 2);
            if (is_memory) memcpy(o->at + o->stride, word, 2);
            else ((ucontext_t*)context)->uc_mcontext.gregs[greg[o->rm]] = word[0] | word[1] << 8;
        }
        return 1;
    }
    return 0;
}

/* --- what the processor says of itself ------------------------------------------------------------------ */

static void do_cpuid(ucontext_t* context) {
    greg_t* const regs = context->uc_mcontext.gregs;
    const unsigned leaf = (unsigned)regs[REG_RAX], sub = (unsigned)regs[REG_RCX];
    unsigned a, b, c, d;
    __cpuid_count(leaf, sub, a, b, c, d);
    if (leaf == 0 && a < 0x1e) a = 0x1e;
    if (leaf == 7 && sub == 0) {
        if (a < 1) a = 1;
        if (has_amx) d |= 1U << 22 | 1U << 24 | 1U << 25; /* bf16, tile, int8 */
        if (has_fp16) d |= 1U << 23;
    }
    if (leaf == 7 && sub == 1 && has_vex_vnni) a |= 1U << 4;
    if (has_amx && leaf == 0x1d) {
        a = sub == 0 ? 1 : sub == 1 ? tiles * 1024 | 1024U << 16 : 0;
        b = sub == 1 ? row_bytes | (unsigned)tiles << 16 : 0;
        c = sub == 1 ? rows_most : 0;
        d = 0;
    } else if (has_amx && leaf == 0x1e) {
        a = c = d = 0;
        b = sub == 0 ? rows_most | (unsigned)row_bytes << 8 : 0;
    } else if (leaf > 0x10 && leaf < 0x1f) {
        a = b = c = d = 0;
    }
    regs[REG_RAX] = a;
    regs[REG_RBX] = b;
    regs[REG_RCX] = c;
    regs[REG_RDX] = d;
}

static void do_xgetbv(ucontext_t* context) {
    uint32_t a, d;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"((uint32_t)context->uc_mcontext.gregs[REG_RCX]));
    if (has_amx && context->uc_mcontext.gregs[REG_RCX] == 0) a |= 3U << 17;
    context->uc_mcontext.gregs[REG_RAX] = a;
    context->uc_mcontext.gregs[REG_RDX] = d;
}

static void on_illegal(int number, siginfo_t* info, void* at) {
    ucontext_t* const context = at;
    const uint8_t* const code = (const uint8_t*)context->uc_mcontext.gregs[REG_RIP];
    Operands o = {.next = code};
    int is_done = 0;
    (void)info;
    if (code[0] == 0x0f && code[1] == 0x0b) {
        do_cpuid(context);
        o.next = code + 2;
        is_done = 1;
    } else if (code[0] == 0x0f && code[1] == 0xff && code[2] == 0xd0) {
        do_xgetbv(context);
        o.next = code + 3;
        is_done = 1;
    } else if (code[0] == 0xc4) {
        is_done = do_vex(context, &o);
    } else if (code[0] == 0x62) {
        is_done = do_evex(context, &o);
    }
    if (is_done) {
        context->uc_mcontext.gregs[REG_RIP] = (greg_t)o.next;
        return;
    }
    char text[96];
    const int length = snprintf(text, sizeof text, "no such instruction: %02x %02x %02x %02x %02x %02x %02x %02x\n",
                                code[0], code[1], code[2], code[3], code[4], code[5], code[6], code[7]);
    if (write(2, text, (size_t)length) < 0) _exit(128 + number);
    struct sigaction otherwise = {.sa_handler = SIG_DFL};
    extern int __sigaction(int, const struct sigaction*, struct sigaction*);
    __sigaction(number, &otherwise, NULL); /* the instruction traps again */
}

/* --- what others must not take back ----------------------------------------------------------------------- */

/* Python's faulthandler asks for SIGILL, too. */
int sigaction(int number, const struct sigaction* new, struct sigaction* old) {
    extern int __sigaction(int, const struct sigaction*, struct sigaction*);
    return __sigaction(number, number == SIGILL ? NULL : new, old);
}

/* Linux gives tiles to who asks for them. */
long syscall(long number, ...) {
    enum { arch_prctl = 158, get_permission = 0x1022, ask_permission = 0x1023 };
    va_list list;
    va_start(list, number);
    long args[6];
    for (int i = 0; i < 6; ++i)
        args[i] = va_arg(list, long);
    va_end(list);
    if (has_amx && number == arch_prctl && args[0] == ask_permission) return 0;
    if (has_amx && number == arch_prctl && args[0] == get_permission) {
        *(uint64_t*)args[1] = 0x602e7; /* x87 to AVX-512, PKRU, both of tiles */
        return 0;
    }
    register long r10 __asm__("r10") = args[3];
    register long r8 __asm__("r8") = args[4];
    register long r9 __asm__("r9") = args[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    if (result >= 0 || result < -4095) return result;
    errno = (int)-result;
    return -1;
}

__attribute__((constructor)) static void begin(void) {
    extern int __sigaction(int, const struct sigaction*, struct sigaction*);
    const char* const features = getenv("ABSENT_INSTRUCTIONS");
    if (features == NULL) return;
    has_amx = strstr(features, "amx") != NULL;
    has_vex_vnni = strstr(features, "avx_vnni") != NULL;
    has_fp16 = strstr(features, "fp16") != NULL;
    for (unsigned i = 2; i < 8; ++i) {
        unsigned a, b, c, d;
        __cpuid_count(0xd, i, a, b, c, d);
        offset_of[i] = b;
    }
    struct sigaction how = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_NODEFER};
    __sigaction(SIGILL, &how, NULL);
}
