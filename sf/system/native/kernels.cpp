// Loops over the numbers of a layer that would be several passes over memory in PyTorch. See sf/system/native/kernels.py.
//
// T is float or BFloat16, as the compiler is told by -DT=; all arithmetic is in float. Arrays are
// dense, in row-major order; N is their number of rows and H the size of the hidden state. A NaN stays one.

#include <cstdint>
#include <cstring>

namespace {

using BFloat16 = uint16_t;  // the upper half of a float

inline float load(float x) { return x; }

inline float load(BFloat16 x) {
    uint32_t bits = uint32_t(x) << 16;
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

inline void store(float *to, float value) { *to = value; }

inline void store(BFloat16 *to, float value) {  // to the nearest, ties to even
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    *to = uint16_t(value != value ? 0x7fc0 : rounded);
}

// The value, or 0 where keep is 0. Not a product, because 0 times NaN is NaN; no branch either, for vectors.
inline float kept(float value, float keep) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    bits &= keep != 0.0f ? 0xffffffffu : 0u;
    std::memcpy(&value, &bits, 4);
    return value;
}

// exp(x) - 1 with the relative error of a few roundings, also around 0. x is taken for at most 88, exp's largest.
inline float expm1(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = __builtin_rintf(x * 1.44269504f);  // x = n log(2) + r, |r| <= log(2) / 2
    float r = x - n * 0.693359375f;              // log(2) in two parts, the first of few digits
    r = r + n * 2.12194440e-4f;
    float p = 1.0f / 5040;  // the Taylor series of (exp(r) - 1 - r) / r^2
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    float q = p * r * r + r;                       // exp(r) - 1
    uint32_t bits = uint32_t(int32_t(n) + 127) << 23;
    float power;  // 2^n
    std::memcpy(&power, &bits, 4);
    return q * power + (power - 1.0f);
}

inline float sigmoid(float x) { return 1.0f / (2.0f + expm1(-x)); }

inline float tanh(float x) {
    float e = expm1(-2.0f * x);
    return -e / (e + 2.0f);
}

}  // namespace

extern "C" {

void elu(T *x, int64_t size) {
    for (int64_t i = 0; i < size; i++) {
        float value = load(x[i]);
        store(x + i, value > 0.0f ? value : expm1(value));
    }
}

// offset + scale x pixel, of images [N, H]. offset [H], scale [1]. Written: out [N, H].
void shift_and_scale(const uint8_t *__restrict pixels, const T *__restrict offset, const T *__restrict scale,
                     T *__restrict out, int64_t N, int64_t H) {
    const float factor = load(*scale);
    for (int64_t n = 0; n < N; n++) {
        for (int64_t k = 0; k < H; k++) {
            store(out + k, load(offset[k]) + factor * float(pixels[k]));
        }
        pixels += H, out += H;
    }
}

// One step of sf.model.cores.lstm forward.
//   x, product [N, 4H]: the input's share of the gates with the biases, and the hidden state's
//   c [N, H], keep [N]: the cell as the step before left it, and 0 where an episode begins here, else 1
//   keep_next [N]: that of the next step
// Written: gates [N, 4H]: activated i, f, g, o; c_next [N, H]; h [N, H]; h_next [N, H]: what the next product takes.
void lstm_forward(const T *__restrict x, const T *__restrict product, const float *__restrict c,
                  const float *__restrict keep, const float *__restrict keep_next, float *__restrict gates,
                  float *__restrict c_next, float *__restrict h, T *__restrict h_next, int64_t N, int64_t H) {
    for (int64_t n = 0; n < N; n++) {
        const float now = keep[n], next = keep_next[n];
        for (int64_t k = 0; k < H; k++) {
            float i = sigmoid(load(x[k]) + load(product[k]));
            float f = sigmoid(load(x[H + k]) + load(product[H + k]));
            float g = tanh(load(x[2 * H + k]) + load(product[2 * H + k]));
            float o = sigmoid(load(x[3 * H + k]) + load(product[3 * H + k]));
            float new_c = f * kept(c[k], now) + i * g;
            float new_h = o * tanh(new_c);
            gates[k] = i, gates[H + k] = f, gates[2 * H + k] = g, gates[3 * H + k] = o;
            c_next[k] = new_c;
            h[k] = new_h;
            store(h_next + k, kept(new_h, next));
        }
        x += 4 * H, product += 4 * H, gates += 4 * H, c += H, c_next += H, h += H, h_next += H;
    }
}

// The same step backward, after the one behind it.
//   grad_h [N, H], product [N, H]: the gradient of h by what is above, and by the next step's product
//   grad_c [N, H]: that of c_next; becomes that of c
//   gates, c, c_next, keep, keep_next: as above
// Written: grad_gates [N, 4H]: before their activation.
void lstm_backward(const float *__restrict grad_h, const T *__restrict product, float *__restrict grad_c,
                   const float *__restrict gates, const float *__restrict c, const float *__restrict c_next,
                   const float *__restrict keep, const float *__restrict keep_next, T *__restrict grad_gates,
                   int64_t N, int64_t H) {
    for (int64_t n = 0; n < N; n++) {
        const float now = keep[n], next = keep_next[n];
        for (int64_t k = 0; k < H; k++) {
            float i = gates[k], f = gates[H + k], g = gates[2 * H + k], o = gates[3 * H + k];
            float tanh_c = tanh(c_next[k]);
            float by_h = grad_h[k] + kept(load(product[k]), next);
            float by_c = grad_c[k] + by_h * o * (1.0f - tanh_c * tanh_c);
            store(grad_gates + k, by_c * g * i * (1.0f - i));
            store(grad_gates + H + k, by_c * kept(c[k], now) * f * (1.0f - f));
            store(grad_gates + 2 * H + k, by_c * i * (1.0f - g * g));
            store(grad_gates + 3 * H + k, by_h * tanh_c * o * (1.0f - o));
            grad_c[k] = kept(by_c * f, now);
        }
        grad_h += H, product += H, grad_c += H, gates += 4 * H, c += H, c_next += H, grad_gates += 4 * H;
    }
}

// One step of sf.model.cores.gru forward.
//   x, product [N, 3H]: the input's share of the gates with its biases, and the hidden state's without, bias [3H]: these
//   h [N, H], keep [N], keep_next [N]: as above
// Written: gates [N, 4H]: r, z and n, activated, and the hidden state's share of n; h_out [N, H]; h_next [N, H].
void gru_forward(const T *__restrict x, const T *__restrict product, const float *__restrict bias,
                 const float *__restrict h, const float *__restrict keep, const float *__restrict keep_next,
                 float *__restrict gates, float *__restrict h_out, T *__restrict h_next, int64_t N, int64_t H) {
    for (int64_t m = 0; m < N; m++) {
        const float now = keep[m], next = keep_next[m];
        for (int64_t k = 0; k < H; k++) {
            float r = sigmoid(load(x[k]) + load(product[k]) + bias[k]);
            float z = sigmoid(load(x[H + k]) + load(product[H + k]) + bias[H + k]);
            float share = load(product[2 * H + k]) + bias[2 * H + k];
            float n = tanh(load(x[2 * H + k]) + r * share);
            float new_h = n + z * (kept(h[k], now) - n);
            gates[k] = r, gates[H + k] = z, gates[2 * H + k] = n, gates[3 * H + k] = share;
            h_out[k] = new_h;
            store(h_next + k, kept(new_h, next));
        }
        x += 3 * H, product += 3 * H, gates += 4 * H, h += H, h_out += H, h_next += H;
    }
}

// The same step backward.
//   grad_h [N, H], product [N, H]: as in lstm_backward
//   grad_z [N, H]: the gradient of h_out past the next step's product; becomes that of h past this one's
// Written: grad_gates, grad_x [N, 3H]: of the hidden state's and of the input's share of the gates.
void gru_backward(const float *__restrict grad_h, const T *__restrict product, float *__restrict grad_z,
                  const float *__restrict gates, const float *__restrict h, const float *__restrict keep,
                  const float *__restrict keep_next, T *__restrict grad_gates, T *__restrict grad_x, int64_t N,
                  int64_t H) {
    for (int64_t m = 0; m < N; m++) {
        const float now = keep[m], next = keep_next[m];
        for (int64_t k = 0; k < H; k++) {
            float r = gates[k], z = gates[H + k], n = gates[2 * H + k], share = gates[3 * H + k];
            float by_h = grad_h[k] + kept(load(product[k]) + grad_z[k], next);
            float by_n = by_h * (1.0f - z) * (1.0f - n * n);
            float by_r = by_n * share * r * (1.0f - r);
            float by_z = by_h * (kept(h[k], now) - n) * z * (1.0f - z);
            store(grad_gates + k, by_r);
            store(grad_gates + H + k, by_z);
            store(grad_gates + 2 * H + k, by_n * r);
            store(grad_x + k, by_r);
            store(grad_x + H + k, by_z);
            store(grad_x + 2 * H + k, by_n);
            grad_z[k] = by_h * z;
        }
        grad_h += H, product += H, grad_z += H, gates += 4 * H, h += H, grad_gates += 3 * H, grad_x += 3 * H;
    }
}

// All S steps of sf.model.cores.mingru forward.
//   x [S, N, 2H]: the gates before their activation, z and n
//   keep [S, N]: 0 where an episode begins, else 1
//   h [S + 1, N, H]: of which the first step is the state before them
// Written: the others.
void mingru_forward(const T *__restrict x, const float *__restrict keep, float *h, int64_t S, int64_t N, int64_t H) {
    for (int64_t m = 0; m < S * N; m++) {
        const float now = keep[m];
        const float *__restrict before = h;
        float *__restrict after = h + N * H;
        for (int64_t k = 0; k < H; k++) {
            float a = load(x[H + k]), z = sigmoid(load(x[k]));
            float n = a < 0.0f ? sigmoid(a) : a + 0.5f;
            float old = kept(before[k], now);
            after[k] = old + z * (n - old);
        }
        x += 2 * H, h += H;
    }
}

// The same steps backward.
//   grad_out [S, N, H]: the gradient of h by what is above
//   x, keep, h: as above
//   grad_h [N, H]: 0; becomes the gradient of the state
// Written: grad_x [S, N, 2H].
void mingru_backward(const float *__restrict grad_out, const T *__restrict x, const float *__restrict keep,
                     const float *__restrict h, float *__restrict grad_h, T *__restrict grad_x, int64_t S, int64_t N,
                     int64_t H) {
    for (int64_t m = S * N - 1; m >= 0; m--) {
        const float now = keep[m];
        const float *__restrict by_out = grad_out + m * H, *__restrict before = h + m * H;
        const T *__restrict gates = x + m * 2 * H;
        T *__restrict by_gates = grad_x + m * 2 * H;
        float *__restrict by_h = grad_h + (m % N) * H;
        for (int64_t k = 0; k < H; k++) {
            float a = load(gates[H + k]), z = sigmoid(load(gates[k])), s = sigmoid(a);
            float n = a < 0.0f ? s : a + 0.5f, slope = a < 0.0f ? s * (1.0f - s) : 1.0f;
            float by = by_out[k] + by_h[k];
            store(by_gates + k, by * (n - kept(before[k], now)) * z * (1.0f - z));
            store(by_gates + H + k, by * z * slope);
            by_h[k] = kept(by * (1.0f - z), now);
        }
    }
}

}  // extern "C"
