#include "harness/sha256.hpp"

#include "harness/error.hpp"

#include <array>
#include <cstring>
#include <string_view>

#include <openssl/evp.h>

namespace bitwitness {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

using Context = std::unique_ptr<EVP_MD_CTX, FreeContext>;

void require(bool done) {
  if (!done) throw Error("SHA-256 is not available from the installed OpenSSL");
}

Context new_context() {
  Context context(EVP_MD_CTX_new());
  require(context != nullptr);
  return context;
}

}  // namespace

struct Sha256::Impl {
  Context context = new_context();
};

Sha256::Sha256() : impl_(std::make_unique<Impl>()) {
  require(EVP_DigestInit_ex(impl_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()) == 1);
}

Sha256Bytes Sha256::digest() const {
  const Context copy = new_context();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  require(EVP_MD_CTX_copy_ex(copy.get(), impl_->context.get()) == 1);
  require(EVP_DigestFinal_ex(copy.get(), digest.data(), &size) == 1);
  Sha256Bytes hash{};
  require(size == hash.size());
  std::memcpy(hash.data(), digest.data(), hash.size());
  return hash;
}

std::string Sha256::hex() const {
  return to_hex(digest());
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string to_hex(const Sha256Bytes& hash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(hash.size() * 2);
  for (const std::byte byte : hash) {
    text.push_back(digits[std::to_integer<unsigned>(byte) >> 4U]);
    text.push_back(digits[std::to_integer<unsigned>(byte) & 15U]);
  }
  return text;
}

}  // namespace bitwitness
