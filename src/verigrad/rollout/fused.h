// Packed matrix products and small vector functions (AVX-512, fp32 or bf16).
//
// A "unit" is 32 bits along the summed dimension: one float, or a pair of bf16 (VPDPBF16PS sums the
// pair in float). Weights come in panels of 32 output columns: [N/32][units of K][32]. A row's
// result does not depend on how many rows are computed beside it: each keeps its own order of
// summation. Work is handed out by counters, so that a core that other programs use does not hold
// up the rest.
#pragma once
#include <immintrin.h>
#include <omp.h>
#include <sched.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using vec = __m512;
using unit = uint32_t;
constexpr int kPanel = 32, kRows = 12, kMaxHead = 256;

struct Float {
  using T = float;
  static constexpr int pack = 1;
  static vec mac(vec acc, __m512i b, __m512i a) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(b), _mm512_castsi512_ps(a), acc);
  }
  static void store(T* p, vec v) { _mm512_storeu_ps(p, v); }
  static vec load(const T* p) { return _mm512_loadu_ps(p); }
};

#ifdef __AVX512BF16__
struct Brain {
  using T = uint16_t;
  static constexpr int pack = 2;
  static vec mac(vec acc, __m512i b, __m512i a) {
    return _mm512_dpbf16_ps(acc, (__m512bh)b, (__m512bh)a);
  }
  static void store(T* p, vec v) {
    _mm256_storeu_si256((__m256i*)p, (__m256i)_mm512_cvtneps_pbh(v));
  }
  static vec load(const T* p) {
    __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
  }
};
#endif

// exp by 2^n times a Taylor polynomial, |r| <= ln(2)/2; relative error below 1e-6. Bounds give
// exactly 0 and infinity, and keep -infinity from becoming NaN.
inline vec exp16(vec x) {
  x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-105.f)), _mm512_set1_ps(89.f));
  vec n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 0);
  vec r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  const float c[] = {1 / 720.f, 1 / 120.f, 1 / 24.f, 1 / 6.f, 0.5f, 1.f, 1.f};
  vec p = _mm512_set1_ps(1 / 5040.f);
  for (float ci : c) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(ci));
  return _mm512_scalef_ps(p, n);
}

template <class N, int R>
void tile(const unit* a, long lda, const unit* w, int units, float* out) {
  vec acc[R][2];
#pragma GCC unroll 12
  for (int r = 0; r < R; r++) acc[r][0] = acc[r][1] = _mm512_setzero_ps();
  for (int k = 0; k < units; k++) {
    __m512i b0 = _mm512_loadu_si512(w + k * kPanel), b1 = _mm512_loadu_si512(w + k * kPanel + 16);
#pragma GCC unroll 12
    for (int r = 0; r < R; r++) {
      __m512i x = _mm512_set1_epi32((int)a[r * lda + k]);
      acc[r][0] = N::mac(acc[r][0], b0, x);
      acc[r][1] = N::mac(acc[r][1], b1, x);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < R; r++) {
    _mm512_storeu_ps(out + r * kPanel, acc[r][0]);
    _mm512_storeu_ps(out + r * kPanel + 16, acc[r][1]);
  }
}

template <class N>
void tiles(int rows, const unit* a, long lda, const unit* w, int units, float* out) {
  switch (rows) {
#define CASE(R) case R: tile<N, R>(a, lda, w, units, out); break;
    CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
    CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
#undef CASE
  }
}

// One phase of a step: which piece is next, and how many pieces are done.
struct Phase {
  std::atomic<int> next{0}, done{0};
};

// Hands out [0, total) in pieces, and returns when all pieces are done, whoever did them. Unlike a
// barrier it does not wait for threads that took no piece (other programs may hold their core), and
// it gives the core away after a short wait.
template <class F>
void share(Phase& phase, int total, int piece, F work) {
  for (;;) {
    int from = phase.next.fetch_add(piece, std::memory_order_relaxed);
    if (from >= total) break;
    int to = from + piece < total ? from + piece : total;
    for (int i = from; i < to; i++) work(i);
    phase.done.fetch_add(to - from, std::memory_order_release);
  }
  for (int spins = 0; phase.done.load(std::memory_order_acquire) < total; spins++)
    spins < 4000 ? _mm_pause() : (void)sched_yield();
}

// done(row, column, first 16 sums, last 16 sums) for every row and panel of a @ w.T + bias.
template <class N, class F>
void gemm(Phase& phase, int rows, const void* a, int columns, int inner, const unit* w,
          const float* bias, F done) {
  const int units = inner / N::pack, panels = (columns + kPanel - 1) / kPanel;
  const int blocks = (rows + kRows - 1) / kRows;
  share(phase, panels, 1, [&](int p) {
    alignas(64) float out[kRows * kPanel];
    vec bias0 = bias ? _mm512_loadu_ps(bias + p * kPanel) : _mm512_setzero_ps();
    vec bias1 = bias ? _mm512_loadu_ps(bias + p * kPanel + 16) : _mm512_setzero_ps();
    for (int block = 0; block < blocks; block++) {
      int from = rows * block / blocks, to = rows * (block + 1) / blocks;
      tiles<N>(to - from, (const unit*)a + (long)from * units, units,
               w + (long)p * units * kPanel, units, out);
      for (int r = from; r < to; r++) {
        const float* o = out + (r - from) * kPanel;
        done(r, p * kPanel, _mm512_add_ps(_mm512_load_ps(o), bias0),
             _mm512_add_ps(_mm512_load_ps(o + 16), bias1));
      }
    }
  });
}

template <class N>
void rms_norm(const float* x, const float* weight, int size, float eps, typename N::T* out) {
  vec sum = _mm512_setzero_ps();
  for (int i = 0; i < size; i += 16) {
    vec v = _mm512_loadu_ps(x + i);
    sum = _mm512_fmadd_ps(v, v, sum);
  }
  vec scale = _mm512_set1_ps(1.f / std::sqrt(_mm512_reduce_add_ps(sum) / size + eps));
  for (int i = 0; i < size; i += 16)
    N::store(out + i, _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), scale),
                                    _mm512_loadu_ps(weight + i)));
}

}  // namespace
