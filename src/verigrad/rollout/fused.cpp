// One decoding step of a Llama-like model, whole, in one parallel region. Compiled by compiled.py.
#include "fused.h"

namespace {

void rotate(const float* x, const float* norm, float eps, const float* cos, const float* sin,
            int size, float* out) {
  float y[kMaxHead];
  std::memcpy(y, x, size * sizeof(float));
  if (norm) rms_norm<Float>(x, norm, size, eps, y);
  const int half = size / 2;
  for (int i = 0; i < half; i++) {
    out[i] = y[i] * cos[i] - y[i + half] * sin[i];
    out[i + half] = y[i + half] * cos[i + half] + y[i] * sin[i + half];
  }
}

// Scores of H query heads against n keys laid out [units of D][stride], 32 keys at a time.
template <class N, int H>
void scores(const unit* q, int units, const unit* keys, long stride, int n, float scale, float* s,
            long s_stride) {
  for (int t = 0; t < n; t += 32) {
    vec acc[H][2];
    for (int h = 0; h < H; h++) acc[h][0] = acc[h][1] = _mm512_setzero_ps();
    for (int u = 0; u < units; u++) {
      __m512i k0 = _mm512_loadu_si512(keys + u * stride + t);
      __m512i k1 = _mm512_loadu_si512(keys + u * stride + t + 16);
      for (int h = 0; h < H; h++) {
        __m512i x = _mm512_set1_epi32((int)q[h * units + u]);
        acc[h][0] = N::mac(acc[h][0], k0, x);
        acc[h][1] = N::mac(acc[h][1], k1, x);
      }
    }
    for (int h = 0; h < H; h++)
      for (int j = 0; j < 2; j++)
        _mm512_storeu_ps(s + h * s_stride + t + 16 * j,
                         _mm512_mul_ps(acc[h][j], _mm512_set1_ps(scale)));
  }
  for (int h = 0; h < H; h++)
    for (int t = n; t < (n + 31) / 32 * 32; t++) s[h * s_stride + t] = -INFINITY;
}

// out[h][0:C*16] += sum over n tokens of weights[h][t] * values[t].
template <class N, int H, int C>
void weigh(const float* s, long s_stride, const typename N::T* values, int size, int n,
           float* out) {
  vec acc[H][C];
  for (int h = 0; h < H; h++)
    for (int c = 0; c < C; c++) acc[h][c] = _mm512_loadu_ps(out + h * size + 16 * c);
  for (int t = 0; t < n; t++) {
    vec v[C];
    for (int c = 0; c < C; c++) v[c] = N::load(values + (long)t * size + 16 * c);
    for (int h = 0; h < H; h++) {
      vec p = _mm512_set1_ps(s[h * s_stride + t]);
      for (int c = 0; c < C; c++) acc[h][c] = _mm512_fmadd_ps(p, v[c], acc[h][c]);
    }
  }
  for (int h = 0; h < H; h++)
    for (int c = 0; c < C; c++) _mm512_storeu_ps(out + h * size + 16 * c, acc[h][c]);
}

void softmax(float* s, long n) {
  vec top = _mm512_set1_ps(-INFINITY);
  for (long t = 0; t < n; t += 16) top = _mm512_max_ps(top, _mm512_loadu_ps(s + t));
  vec high = _mm512_set1_ps(_mm512_reduce_max_ps(top)), sum = _mm512_setzero_ps();
  for (long t = 0; t < n; t += 16) {
    vec e = exp16(_mm512_sub_ps(_mm512_loadu_ps(s + t), high));
    sum = _mm512_add_ps(sum, e);
    _mm512_storeu_ps(s + t, e);
  }
  vec scale = _mm512_set1_ps(1.f / _mm512_reduce_add_ps(sum));
  for (long t = 0; t < n; t += 16)
    _mm512_storeu_ps(s + t, _mm512_mul_ps(_mm512_loadu_ps(s + t), scale));
}

}  // namespace

extern "C" {

struct Layer {
  const float* norm_in;
  const unit* qkv;
  const float *qkv_bias, *q_norm, *k_norm;
  const unit* out;
  const float *out_bias, *norm_mid;
  const unit* gate_up;
  const float* gate_up_bias;
  const unit* down;
  const float* down_bias;
};

struct Model {
  const Layer* layer;
  const float* norm;
  const unit* head;
  const float *cos, *sin;
  int layers, hidden, inner, heads, kv_heads, head_dim, vocab, brain;
  float eps;
};

// Keys [L][rows][K][units of D][columns], values [L][rows][K][columns][D]; the prefix likewise.
struct Cache {
  unit* keys;
  void* values;
  const unit* prefix_keys;
  const void* prefix_values;
  int rows, columns, prefix_columns, prefix_length;
};

struct Space {
  float *x, *qkv, *logits;
  void *normed, *mixed, *act;
  const int* own;
  int count, logits_columns, threads;
};

}  // extern "C"

namespace {

template <class N, int H>
void heads(const Model& m, const Cache& c, const unit* q, const unit* keys,
           const typename N::T* values, const unit* prefix_keys, const typename N::T* prefix_values,
           int own, float* s, float* out) {
  const int D = m.head_dim, units = D / N::pack;
  const int before = (c.prefix_length + 31) / 32 * 32;
  const long width = before + (own + 31) / 32 * 32;
  const float scale = 1.f / std::sqrt((float)D);
  scores<N, H>(q, units, prefix_keys, c.prefix_columns, c.prefix_length, scale, s, width);
  scores<N, H>(q, units, keys, c.columns, own, scale, s + before, width);
  for (int h = 0; h < H; h++) softmax(s + h * width, width);
  std::memset(out, 0, sizeof(float) * H * D);
  int d = 0;
  for (; d + 64 <= D; d += 64) {
    weigh<N, H, 4>(s, width, prefix_values + d, D, c.prefix_length, out + d);
    weigh<N, H, 4>(s + before, width, values + d, D, own, out + d);
  }
  for (; d < D; d += 16) {
    weigh<N, H, 1>(s, width, prefix_values + d, D, c.prefix_length, out + d);
    weigh<N, H, 1>(s + before, width, values + d, D, own, out + d);
  }
}

// One row and key-value head: rotate, append key and value, attend with the head's queries.
template <class N>
void attend(const Model& m, const Cache& c, const Space& w, int index, int row, int kv,
            std::vector<float>& s) {
  using T = typename N::T;
  const int D = m.head_dim, G = m.heads / m.kv_heads, units = D / N::pack, own = w.own[row];
  const long place = (long)(c.prefix_length + own) * D;
  const long slot = ((long)index * c.rows + row) * m.kv_heads + kv;
  const long shared = (long)index * m.kv_heads + kv;
  const Layer& layer = m.layer[index];
  const float* qkv = w.qkv + (long)row * (m.heads + 2 * m.kv_heads) * D;
  unit* keys = c.keys + slot * units * c.columns;
  T* values = (T*)c.values + slot * c.columns * D;
  alignas(64) float turned[kMaxHead], out[4 * kMaxHead];
  alignas(64) T packed[4 * kMaxHead];
  auto turn = [&](int head, const float* norm, T* to) {
    rotate(qkv + (long)head * D, norm, m.eps, m.cos + place, m.sin + place, D, turned);
    for (int d = 0; d < D; d += 16) N::store(to + d, _mm512_load_ps(turned + d));
  };
  turn(m.heads + kv, layer.k_norm, packed);
  for (int u = 0; u < units; u++)
    std::memcpy(keys + (long)u * c.columns + own, packed + u * N::pack, 4);
  const float* v = qkv + (long)(m.heads + m.kv_heads + kv) * D;
  for (int d = 0; d < D; d += 16) N::store(values + (long)own * D + d, _mm512_loadu_ps(v + d));
  s.resize(4 * (c.prefix_length + own + 128));
  T* mixed = (T*)w.mixed + (long)row * m.heads * D;
  for (int g = 0; g < G; g += 4) {
    const int first = kv * G + g, count = G - g < 4 ? G - g : 4;
    for (int h = 0; h < count; h++) turn(first + h, layer.q_norm, packed + h * D);
    const unit* prefix_keys = c.prefix_keys + shared * units * c.prefix_columns;
    const T* prefix_values = (const T*)c.prefix_values + shared * c.prefix_columns * D;
    auto run = count == 1 ? heads<N, 1> : count == 2 ? heads<N, 2> : count == 3 ? heads<N, 3>
                                                                               : heads<N, 4>;
    run(m, c, (const unit*)packed, keys, values, prefix_keys, prefix_values, own + 1, s.data(),
        out);
    for (int i = 0; i < count * D; i += 16)
      N::store(mixed + (long)first * D + i, _mm512_load_ps(out + i));
  }
}

vec gated(vec gate, vec up) {
  vec one = _mm512_set1_ps(1.f);
  return _mm512_mul_ps(
      up, _mm512_div_ps(gate, _mm512_add_ps(one, exp16(_mm512_sub_ps(_mm512_setzero_ps(), gate)))));
}

template <class N>
void step(const Model& m, const Cache& c, const Space& w) {
  using T = typename N::T;
  const int B = w.count, E = m.hidden, D = m.head_dim;
  const int wide = (m.heads + 2 * m.kv_heads) * D;
  std::vector<Phase> phases(7 * m.layers + 2);
#pragma omp parallel num_threads(w.threads)
  {
    std::vector<float> s;
    Phase* phase = phases.data();
    auto add = [&](int r, int n, vec a, vec b) {
      float* x = w.x + (long)r * E + n;
      _mm512_storeu_ps(x, _mm512_add_ps(_mm512_loadu_ps(x), a));
      _mm512_storeu_ps(x + 16, _mm512_add_ps(_mm512_loadu_ps(x + 16), b));
    };
    auto norm = [&](const float* weight) {
      share(*phase++, B, 2, [&](int r) {
        rms_norm<N>(w.x + (long)r * E, weight, E, m.eps, (T*)w.normed + (long)r * E);
      });
    };
    for (int i = 0; i < m.layers; i++) {
      const Layer& l = m.layer[i];
      norm(l.norm_in);
      gemm<N>(*phase++, B, w.normed, wide, E, l.qkv, l.qkv_bias, [&](int r, int n, vec a, vec b) {
        _mm512_storeu_ps(w.qkv + (long)r * wide + n, a);
        _mm512_storeu_ps(w.qkv + (long)r * wide + n + 16, b);
      });
      share(*phase++, B * m.kv_heads, 2,
            [&](int at) { attend<N>(m, c, w, i, at % B, at / B, s); });
      gemm<N>(*phase++, B, w.mixed, E, m.heads * D, l.out, l.out_bias, add);
      norm(l.norm_mid);
      gemm<N>(*phase++, B, w.normed, 2 * m.inner, E, l.gate_up, l.gate_up_bias,
              [&](int r, int n, vec a, vec b) {
                N::store((T*)w.act + (long)r * m.inner + n / 2, gated(a, b));
              });
      gemm<N>(*phase++, B, w.act, E, m.inner, l.down, l.down_bias, add);
    }
    norm(m.norm);
    gemm<N>(*phase++, B, w.normed, m.vocab, E, m.head, nullptr, [&](int r, int n, vec a, vec b) {
      _mm512_storeu_ps(w.logits + (long)r * w.logits_columns + n, a);
      _mm512_storeu_ps(w.logits + (long)r * w.logits_columns + n + 16, b);
    });
  }
}

// kind 0: a @ w.T + bias as floats; 1: the same in the precision of a; 2: silu(gate) * up.
template <class N>
void linear(const void* a, int rows, int columns, int inner, const unit* w, const float* bias,
            int kind, void* out, int threads) {
  using T = typename N::T;
  Phase phase;
  const int wide = (columns + kPanel - 1) / kPanel * kPanel;
#pragma omp parallel num_threads(threads)
  gemm<N>(phase, rows, a, columns, inner, w, bias, [&](int r, int n, vec x, vec y) {
    if (kind == 2) return N::store((T*)out + (long)r * (wide / 2) + n / 2, gated(x, y));
    if (kind == 1) {
      N::store((T*)out + (long)r * wide + n, x);
      return N::store((T*)out + (long)r * wide + n + 16, y);
    }
    _mm512_storeu_ps((float*)out + (long)r * wide + n, x);
    _mm512_storeu_ps((float*)out + (long)r * wide + n + 16, y);
  });
}

}  // namespace

extern "C" {

int has_brain() {
#ifdef __AVX512BF16__
  return 1;
#else
  return 0;
#endif
}

void decode_step(const Model* m, const Cache* c, const Space* w) {
#ifdef __AVX512BF16__
  if (m->brain) return step<Brain>(*m, *c, *w);
#endif
  step<Float>(*m, *c, *w);
}

void packed_linear(const void* a, int rows, int columns, int inner, const unit* w,
                   const float* bias, int kind, int brain, void* out, int threads) {
#ifdef __AVX512BF16__
  if (brain) return linear<Brain>(a, rows, columns, inner, w, bias, kind, out, threads);
#endif
  linear<Float>(a, rows, columns, inner, w, bias, kind, out, threads);
}

// [columns][units] -> panels [columns/32][units][32]; columns past the end are zero.
void pack_panels(const unit* from, int columns, int units, unit* to, int threads) {
  const int panels = (columns + kPanel - 1) / kPanel;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 4)
  for (int p = 0; p < panels; p++)
    for (int k0 = 0; k0 < units; k0 += 16)
      for (int j = 0; j < kPanel; j++) {
        const int n = p * kPanel + j;
        for (int k = k0; k < units && k < k0 + 16; k++)
          to[((long)p * units + k) * kPanel + j] = n < columns ? from[(long)n * units + k] : 0;
      }
}

// Inverse-CDF sampling of softmax(logits * inverse_temperature) and the log-probability, no filter.
// A forced token >= 0 is taken; greedy takes the first maximum. Rows are stride floats apart.
void sample_tokens(const float* logits, int rows, int vocab, long stride, float inverse_temperature,
                   int greedy, const double* noise, const int64_t* forced, int64_t* tokens,
                   float* logprobs, int threads) {
  constexpr int block = 256;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (int r = 0; r < rows; r++) {
    const float* x = logits + r * stride;
    const vec t = _mm512_set1_ps(inverse_temperature);
    vec top = _mm512_set1_ps(-INFINITY);
    auto mask = [&](int i) {
      return (__mmask16)(vocab - i >= 16 ? 0xffff : (1 << (vocab - i)) - 1);
    };
    auto at = [&](int i) {
      vec v = _mm512_maskz_loadu_ps(mask(i), x + i);
      return _mm512_mask_mul_ps(_mm512_set1_ps(-INFINITY), mask(i), v, t);
    };
    for (int i = 0; i < vocab; i += 16) top = _mm512_max_ps(top, at(i));
    const float high = _mm512_reduce_max_ps(top);
    const vec h = _mm512_set1_ps(high);
    std::vector<double> sums;
    double total = 0;
    for (int from = 0; from < vocab; from += block) {
      vec sum = _mm512_setzero_ps();
      for (int i = from; i < from + block && i < vocab; i += 16)
        sum = _mm512_add_ps(sum, exp16(_mm512_sub_ps(at(i), h)));
      sums.push_back(_mm512_reduce_add_ps(sum));
      total += sums.back();
    }
    int64_t token = forced[r];
    if (token < 0 && greedy) {
      for (token = 0; x[token] * inverse_temperature != high;) token++;
    } else if (token < 0) {
      double goal = noise[r] * total;
      size_t b = 0;
      while (b + 1 < sums.size() && goal >= sums[b]) goal -= sums[b++];
      double run = 0;
      for (int from = (int)b * block, i = from; i < from + block && i < vocab; i += 16) {
        alignas(64) float e[16];
        _mm512_store_ps(e, exp16(_mm512_sub_ps(at(i), h)));
        for (int j = 0; j < 16 && i + j < vocab; j++) {
          if (e[j] > 0) token = i + j;
          if ((run += e[j]) > goal) { i = vocab; break; }
        }
      }
    }
    tokens[r] = token;
    logprobs[r] = x[token] * inverse_temperature - high - (float)std::log(total);
  }
}

}  // extern "C"
