/* Instructions of AMX and AVX_VNNI beside plain C of what Intel's manual says of each.
 *
 * Prints a line for each that differs, or "equal" and how many were compared.
 */
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows_most = 16, row_bytes = 64 };

static int compared, differing;

static void compare(const char* name, const void* computed, const void* expected, size_t bytes) {
    ++compared;
    if (memcmp(computed, expected, bytes) == 0) return;
    ++differing;
    printf("%s differs\n", name);
}

static uint32_t state = 1;

static uint32_t drawn(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void fill(void* at, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i)
        ((uint8_t*)at)[i] = (uint8_t)(drawn() >> 11);
}

/* --- tiles ----------------------------------------------------------------------------------- */

typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t colsb[16];
    uint8_t rows[16];
} Config;

static void configure(int m, int k, int n) {
    static Config config; /* named by a displacement from the instruction */
    memset(&config, 0, sizeof config);
    config.palette = 1;
    config.rows[0] = config.rows[1] = config.rows[7] = (uint8_t)m;
    config.colsb[0] = config.colsb[7] = (uint16_t)(4 * n);
    config.colsb[1] = (uint16_t)(4 * k);
    config.rows[2] = (uint8_t)k;
    config.colsb[2] = (uint16_t)(4 * n);
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
    Config stored;
    uint8_t* const base = (uint8_t*)&stored - 4096;
    __asm__ volatile("mov %0, %%r13\n\tsttilecfg 4096(%%r13)" : : "r"(base) : "r13", "memory");
    compare("sttilecfg", &stored, &config, sizeof config);
}

/* dst: m x n of 32 bits, in rows of 80 bytes; a: m rows, b: k rows, of 72 and 100 bytes. */
#define PRODUCT(name)                                                                              \
    static void name(uint8_t* dst, const uint8_t* a, const uint8_t* b) {                           \
        __asm__ volatile("mov $20, %%r12\n\t"                                                      \
                         "tileloadd (%0, %%r12, 4), %%tmm7\n\t"                                    \
                         "mov $36, %%rdx\n\t"                                                      \
                         "tileloadd 128(%1, %%rdx, 2), %%tmm1\n\t"                                 \
                         "mov $100, %%r15\n\tmov %2, %%r12\n\t"                                    \
                         "tileloaddt1 -512(%%r12, %%r15, 1), %%tmm2\n\t" #name                     \
                         " %%tmm2, %%tmm1, %%tmm7\n\t"                                             \
                         "mov $10, %%rdx\n\t"                                                      \
                         "tilestored %%tmm7, (%0, %%rdx, 8)\n\t"                                   \
                         :                                                                         \
                         : "r"(dst), "r"(a - 128), "r"(b + 512)                                    \
                         : "rdx", "r12", "r15", "memory");                                         \
    }
PRODUCT(tdpbssd)
PRODUCT(tdpbsud)
PRODUCT(tdpbusd)
PRODUCT(tdpbuud)
PRODUCT(tdpbf16ps)

typedef void (*Product)(uint8_t*, const uint8_t*, const uint8_t*);

static void of_bytes(uint8_t* dst, const uint8_t* a, const uint8_t* b, int m, int k, int n,
                     int left, int right) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            uint32_t sum;
            memcpy(&sum, dst + 80 * i + 4 * j, 4);
            for (int p = 0; p < 4 * k; ++p) {
                const uint8_t x = a[72 * i + p], y = b[100 * (p / 4) + 4 * j + p % 4];
                sum += (uint32_t)((left ? (int8_t)x : x) * (right ? (int8_t)y : y));
            }
            memcpy(dst + 80 * i + 4 * j, &sum, 4);
        }
}

static float flushed(float x) {
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static float of_bf16(const uint8_t* at) {
    const uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
    float x;
    memcpy(&x, &bits, 4);
    return flushed(x);
}

/* Even and odd products are summed apart, each by one rounding; then their sum is added. */
static void of_pairs(uint8_t* dst, const uint8_t* a, const uint8_t* b, int m, int k, int n) {
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            float sums[2] = {0, 0}, sum;
            for (int p = 0; p < 2 * k; ++p)
                sums[p % 2] =
                        flushed(fmaf(of_bf16(a + 72 * i + 2 * p),
                                     of_bf16(b + 100 * (p / 2) + 4 * j + p % 2 * 2), sums[p % 2]));
            memcpy(&sum, dst + 80 * i + 4 * j, 4);
            sum = flushed(flushed(sum) + flushed(sums[0] + sums[1]));
            memcpy(dst + 80 * i + 4 * j, &sum, 4);
        }
}

/* Numbers of few magnitudes, denormal ones among them, none infinite. */
static void fill_bf16(uint8_t* at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 2) {
        const uint32_t bits = drawn() >> 8;
        const uint16_t exponent = bits % 16 == 0 ? 0 : (uint16_t)(60 + bits % 9);
        const uint16_t number = (uint16_t)((bits & 0x8000) | exponent << 7 | (bits >> 16 & 127));
        memcpy(at + i, &number, 2);
    }
}

static void check_tiles(void) {
    static const struct {
        const char* name;
        Product product;
        int left, right;
    } all[] = {{"tdpbssd", tdpbssd, 1, 1},
               {"tdpbsud", tdpbsud, 1, 0},
               {"tdpbusd", tdpbusd, 0, 1},
               {"tdpbuud", tdpbuud, 0, 0},
               {"tdpbf16ps", tdpbf16ps, 0, 0}};
    for (int turn = 0; turn < 200; ++turn) {
        const int m = turn ? 1 + drawn() % 16 : 16, k = turn ? 1 + drawn() % 16 : 16,
                  n = turn ? 1 + drawn() % 16 : 16;
        uint8_t dst[16 * 80], expected[16 * 80], a[16 * 72], b[16 * 100];
        configure(m, k, n);
        for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
            const int is_bf16 = all[i].product == tdpbf16ps;
            fill(dst, sizeof dst);
            fill(a, sizeof a);
            fill(b, sizeof b);
            if (is_bf16) {
                fill_bf16(a, sizeof a);
                fill_bf16(b, sizeof b);
                for (size_t j = 0; j < sizeof dst; j += 4) {
                    const float sum = ldexpf((float)(int32_t)drawn(), -149 - (int)(drawn() % 8));
                    memcpy(dst + j, &sum, 4);
                }
            }
            memcpy(expected, dst, sizeof dst);
            if (is_bf16)
                of_pairs(expected, a, b, m, k, n);
            else
                of_bytes(expected, a, b, m, k, n, all[i].left, all[i].right);
            const unsigned control = _mm_getcsr();
            if (is_bf16) _mm_setcsr(0x5f80); /* upwards: tiles take no notice */
            all[i].product(dst, a, b);
            if (is_bf16 && _mm_getcsr() != 0x5f80) compare("mxcsr after tdpbf16ps", "0", "1", 1);
            _mm_setcsr(control);
            compare(all[i].name, dst, expected, sizeof dst);
        }
    }
    /* A load clears what is beyond a tile's rows and columns; tilezero all of it. */
    uint8_t bytes[16 * 64], expected[16 * 64] = {0};
    configure(16, 16, 16);
    fill(bytes, sizeof bytes);
    __asm__ volatile("mov $64, %%rdx\n\ttileloadd (%0, %%rdx, 1), %%tmm0\n\ttilezero "
                     "%%tmm0\n\ttilestored %%tmm0, (%0, %%rdx, 1)"
                     :
                     : "r"(bytes)
                     : "rdx", "memory");
    compare("tilezero", bytes, expected, sizeof bytes);
    __asm__ volatile("tilerelease");
    Config stored, none;
    memset(&none, 0, sizeof none);
    __asm__ volatile("sttilecfg %0" : "=m"(stored));
    compare("tilerelease", &stored, &none, sizeof none);
}

/* --- the 256-bit VNNI --------------------------------------------------------------------------
 */

static void of_dot(uint8_t* sums, const uint8_t* a, const uint8_t* b, int bytes, int is_words,
                   int is_clamped) {
    for (int i = 0; i < bytes; i += 4) {
        int32_t before;
        memcpy(&before, sums + i, 4);
        int64_t sum = before;
        for (int j = 0; j < 4 && !is_words; ++j)
            sum += a[i + j] * (int8_t)b[i + j];
        for (int j = 0; j < 4 && is_words; j += 2)
            sum += (int64_t)(int16_t)(a[i + j] | a[i + j + 1] << 8) *
                   (int16_t)(b[i + j] | b[i + j + 1] << 8);
        if (is_clamped) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
        const uint32_t after = (uint32_t)sum;
        memcpy(sums + i, &after, 4);
    }
}

static uint8_t beside[32]
        __attribute__((aligned(32))); /* named by a displacement from the instruction */

/* dst, a and b: 64 bytes each. Registers of both halves, whose upper parts are not zero before. */
#define DOT(name, r)                                                                               \
    static void name##_##r(uint8_t* dst, const uint8_t* a, const uint8_t* b, int how) {            \
        memcpy(beside, b, 32);                                                                     \
        if (how == 0)                                                                              \
            __asm__ volatile("vmovdqu64 (%0), %%zmm1\n\tvmovdqu64 (%1), %%zmm2\n\tvmovdqu64 "      \
                             "(%2), %%zmm3\n\t"                                                    \
                             "%{vex%} " #name " %%" #r "mm3, %%" #r "mm2, %%" #r                   \
                             "mm1\n\tvmovdqu64 %%zmm1, (%0)"                                       \
                             :                                                                     \
                             : "r"(dst), "r"(a), "r"(b)                                            \
                             : "xmm1", "xmm2", "xmm3", "memory");                                  \
        if (how == 1)                                                                              \
            __asm__ volatile("vmovdqu64 (%0), %%zmm15\n\tvmovdqu64 (%1), %%zmm8\n\tvmovdqu64 "     \
                             "(%2), %%zmm12\n\t"                                                   \
                             "%{vex%} " #name " %%" #r "mm12, %%" #r "mm8, %%" #r                  \
                             "mm15\n\tvmovdqu64 %%zmm15, (%0)"                                     \
                             :                                                                     \
                             : "r"(dst), "r"(a), "r"(b)                                            \
                             : "xmm8", "xmm12", "xmm15", "memory");                                \
        if (how == 2)                                                                              \
            __asm__ volatile(                                                                      \
                    "vmovdqu64 (%0), %%zmm9\n\tvmovdqu64 (%1), %%zmm0\n\tmov $-8, %%r13\n\t"       \
                    "mov %2, %%r12\n\t"                                                            \
                    "%{vex%} " #name " 96(%%r12, %%r13, 8), %%" #r "mm0, %%" #r                    \
                    "mm9\n\tvmovdqu64 %%zmm9, (%0)"                                                \
                    :                                                                              \
                    : "r"(dst), "r"(a), "r"(b - 32)                                                \
                    : "xmm0", "xmm9", "r12", "r13", "memory");                                     \
        if (how == 3)                                                                              \
            __asm__ volatile("vmovdqu64 (%0), %%zmm9\n\tvmovdqu64 (%1), %%zmm0\n\t"                \
                             "%{vex%} " #name " %2, %%" #r "mm0, %%" #r                            \
                             "mm9\n\tvmovdqu64 %%zmm9, (%0)"                                       \
                             :                                                                     \
                             : "r"(dst), "r"(a), "m"(beside)                                       \
                             : "xmm0", "xmm9", "memory");                                          \
    }
DOT(vpdpbusd, x)
DOT(vpdpbusds, x)
DOT(vpdpwssd, x)
DOT(vpdpwssds, x)
DOT(vpdpbusd, y)
DOT(vpdpbusds, y)
DOT(vpdpwssd, y)
DOT(vpdpwssds, y)

static void check_dots(void) {
    static const struct {
        const char* name;
        void (*dot)(uint8_t*, const uint8_t*, const uint8_t*, int);
        int bytes, is_words, is_clamped;
    } all[] = {{"vpdpbusd xmm", vpdpbusd_x, 16, 0, 0}, {"vpdpbusds xmm", vpdpbusds_x, 16, 0, 1},
               {"vpdpwssd xmm", vpdpwssd_x, 16, 1, 0}, {"vpdpwssds xmm", vpdpwssds_x, 16, 1, 1},
               {"vpdpbusd ymm", vpdpbusd_y, 32, 0, 0}, {"vpdpbusds ymm", vpdpbusds_y, 32, 0, 1},
               {"vpdpwssd ymm", vpdpwssd_y, 32, 1, 0}, {"vpdpwssds ymm", vpdpwssds_y, 32, 1, 1}};
    for (int turn = 0; turn < 100; ++turn)
        for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
            for (int how = 0; how < 4; ++how) {
                uint8_t dst[64], expected[64] = {0}, a[64], b[64];
                fill(dst, sizeof dst);
                fill(a, sizeof a);
                fill(b, sizeof b);
                for (int j = 0; j < 64; j += 4)
                    if (drawn() & 256)
                        memcpy(dst + j, drawn() & 512 ? "\xff\xff\xff\x7f" : "\0\0\0\x80", 4);
                memset(a + 4, turn % 2 ? 0xff : 0x80, 4); /* the largest of products, too */
                memset(b + 4, turn % 3 ? 0x80 : 0x7f, 4);
                memcpy(expected, dst, (size_t)all[i].bytes);
                of_dot(expected, a, b, all[i].bytes, all[i].is_words, all[i].is_clamped);
                all[i].dot(dst, a, b, how);
                compare(all[i].name, dst, expected, sizeof dst);
            }
}

/* --- each thread's own tiles ---------------------------------------------------------------------
 */

static pthread_barrier_t all_loaded;

static void* with_tiles(void* own) {
    uint8_t bytes[16 * 64], stored[16 * 64] = {0};
    memset(bytes, *(const int*)own, sizeof bytes);
    configure(16, 16, 16);
    __asm__ volatile("mov $64, %%rdx\n\ttileloadd (%0, %%rdx, 1), %%tmm0"
                     :
                     : "r"(bytes)
                     : "rdx", "memory");
    pthread_barrier_wait(&all_loaded);
    __asm__ volatile("mov $64, %%rdx\n\ttilestored %%tmm0, (%0, %%rdx, 1)"
                     :
                     : "r"(stored)
                     : "rdx", "memory");
    return (void*)(intptr_t)memcmp(stored, bytes, sizeof bytes);
}

static void check_threads(void) {
    enum { count = 4 };
    pthread_t threads[count];
    int own[count];
    pthread_barrier_init(&all_loaded, NULL, count);
    for (int i = 0; i < count; ++i) {
        own[i] = i + 1;
        pthread_create(&threads[i], NULL, with_tiles, &own[i]);
    }
    for (int i = 0; i < count; ++i) {
        void* result;
        pthread_join(threads[i], &result);
        compare("a thread's tile", &result, &(void*){NULL}, sizeof result);
    }
}

int main(int count, char** names) {
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 1; i < count; ++i) {
        if (strcmp(names[i], "amx") == 0) {
            check_tiles();
            check_threads();
        } else {
            check_dots();
        }
    }
    if (differing == 0) printf("equal: %d\n", compared);
    return differing != 0;
}
