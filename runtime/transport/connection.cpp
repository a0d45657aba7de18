#include "runtime/transport/connection.hpp"
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
namespace mneme {
namespace {

constexpr std::size_t in_bytes = std::size_t{16} << 10;
/// Longest time that a peer may take to close a connection after this end has finished sending.
constexpr std::chrono::seconds closing_timeout{1};

[[noreturn]] void fail(const std::string& text) { throw protocol_error(text); }

std::string system_text(int error) { return std::strerror(error); }

const std::string other_secret = "does not have the same secret (MNEME_SECRET or --secret)";

} // namespace

connection::connection(owned_descriptor socket, const tls_identity_ref& identity, std::string host, bool connecting,
                       const connection_limits& limits, clock::time_point now)
    : socket_(std::move(socket)), tls_(identity ? identity->session(socket_.get(), host.empty()) : nullptr),
      host_(identity && identity->has_secret() ? std::string() : std::move(host)),
      has_secret_(identity && identity->has_secret()), stage_(connecting ? stage::connecting
                                                              : identity ? stage::tls
                                                                         : stage::open),
      limits_(limits), reader_(limits.first_message_bytes), in_(in_bytes), out_(identity != nullptr), began_(now),
      last_received_(now), spoke_(now) {
  if (identity && !tls_)
    fail("has no TLS session: " + tls_error_text());
}

connection::~connection() {
  if (tls_ && stage_ == stage::open && !finished_)
    SSL_shutdown(tls_.get());
  ERR_clear_error();
}

short connection::awaited_events() const {
  if (stage_ == stage::connecting)
    return POLLOUT;
  if (stage_ == stage::tls)
    return tls_wants_write_ ? POLLOUT : POLLIN;
  const bool writes = !finished_ && (out_.left() > 0 || writer_.has_something());
  return static_cast<short>(writes ? POLLIN | POLLOUT : POLLIN);
}

void connection::process_io(clock::time_point now) {
  if (stage_ == stage::connecting)
    finish_connecting();
  if (stage_ == stage::tls)
    shake_hands();
  if (stage_ != stage::open)
    return;
  const auto received = bytes_received_;
  read_some();
  send_now(now);
  if (bytes_received_ > received)
    last_received_ = now;
}

void connection::send_now(clock::time_point now) {
  if (finished_)
    return;
  const auto sent = bytes_sent_;
  write_some();
  if (bytes_sent_ > sent)
    spoke_ = now;
}

void connection::finish_connecting() {
  pollfd state{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&state, 1, 0) == 0)
    return;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0)
    fail("cannot be reached: " + system_text(error));
  stage_ = tls_ ? stage::tls : stage::open;
}

void connection::shake_hands() {
  ERR_clear_error();
  const int done = SSL_do_handshake(tls_.get());
  if (done == 1) {
    if (const auto error = host_.empty() ? std::string() : certificate_name_error(tls_.get(), host_); !error.empty())
      throw incompatible_peer(error);
    if (has_secret_ && SSL_session_reused(tls_.get()) != 1) // the two ends have not agreed on a key
      throw incompatible_peer(other_secret);
    stage_ = stage::open;
    return;
  }
  const int error = SSL_get_error(tls_.get(), done);
  tls_wants_write_ = error == SSL_ERROR_WANT_WRITE;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
    return;
  if (const auto verified = SSL_get_verify_result(tls_.get()); verified != X509_V_OK && !has_secret_)
    throw incompatible_peer(std::string("presents a certificate that is not accepted: ") +
                            X509_verify_cert_error_string(verified));
  const auto reason = ERR_GET_REASON(ERR_peek_error());
  const auto text = "fails the TLS handshake: " + tls_error_text();
  if (error != SSL_ERROR_SSL || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    fail(text);
  throw incompatible_peer(has_secret_ ? other_secret + (" (" + text + ")") : text);
}

std::size_t connection::moved(std::ptrdiff_t count, const char* act) {
  if (count > 0)
    return static_cast<std::size_t>(count);
  if (tls_) {
    const int error = SSL_get_error(tls_.get(), static_cast<int>(count));
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
      return 0;
    if (error == SSL_ERROR_ZERO_RETURN)
      fail("has closed the connection");
    const bool is_eof = ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    const auto text = std::string(act) + " by TLS fails: " + tls_error_text();
    if (error == SSL_ERROR_SSL && !is_eof && !reader_.has_begun()) // in TLS 1.3 a client receives a rejection only
                                                                   // after its handshake
      throw incompatible_peer("does not accept the credentials of this process: " + text);
    fail(text);
  }
  if (count == 0 || errno == ECONNRESET)
    fail(reader_.has_begun() ? "has closed the connection"
                             : "has closed the connection immediately; it may require MNEME_SECRET or certificates");
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
    return 0;
  fail(std::string(act) + " fails: " + system_text(errno));
}

/// Receives bytes. Message parts are received directly into their final memory, without a copy.
std::size_t connection::receive() {
  ERR_clear_error();
  const auto write_area = reader_.write_area();
  std::size_t count = 0;
  if (tls_) {
    const auto into = write_area.empty() ? std::span(in_) : write_area;
    count = moved(SSL_read(tls_.get(), into.data(), static_cast<int>(into.size())), "receiving");
  } else {
    std::array<iovec, 2> into{{{write_area.data(), write_area.size()}, {in_.data(), in_.size()}}};
    msghdr whole{};
    whole.msg_iov = into.data();
    whole.msg_iovlen = into.size();
    count = moved(::recvmsg(socket_.get(), &whole, 0), "receiving");
  }
  const auto placed = std::min(count, write_area.size());
  if (finished_)
    return count;
  reader_.mark_written(placed);
  reader_.feed(std::span(in_).first(count - placed));
  return count;
}

std::size_t connection::transmit() {
  ERR_clear_error();
  const auto pieces = out_.pieces();
  if (tls_)
    return moved(SSL_write(tls_.get(), pieces[0].data(), static_cast<int>(pieces[0].size())), "sending");
  std::array<iovec, outgoing_frames::pieces_max> from{};
  for (std::size_t i = 0; i < pieces.size(); ++i)
    from[i] = {const_cast<std::byte*>(pieces[i].data()), pieces[i].size()}; // sendmsg() does not write to it
  msghdr whole{};
  whole.msg_iov = from.data();
  whole.msg_iovlen = pieces.size();
  return moved(::sendmsg(socket_.get(), &whole, MSG_NOSIGNAL), "sending");
}

/// Reads a limited number of bytes, so that other connections are served as well.
void connection::read_some() {
  constexpr std::size_t turn_bytes = 4 * frame_bytes_max;
  const auto has_decrypted = [this] { return tls_ && SSL_pending(tls_.get()) > 0; }; // poll() does not report these
                                                                                     // bytes
  for (std::size_t turn = 0; turn < turn_bytes || has_decrypted();) {
    const auto count = receive();
    if (count == 0)
      return;
    bytes_received_ += count;
    turn += count;
    writer_.acknowledged(reader_.take_acknowledged());
    if (const auto credit = reader_.take_credit(); credit > 0)
      writer_.add_credit(credit);
  }
}

void connection::write_some() {
  constexpr int turns_max = 4;
  for (int turn = 0; turn < turns_max; ++turn) {
    if (out_.left() == 0)
      writer_.write_to(out_);
    if (out_.left() == 0)
      return;
    const auto count = transmit();
    if (count == 0)
      return;
    bytes_sent_ += count;
    out_.advance(count);
  }
}

void connection::check_timeouts(clock::time_point now) {
  if (!authenticated_ && now - began_ > limits_.handshake_timeout)
    fail(stage_ == stage::connecting ? "cannot be reached: no answer"
         : stage_ == stage::tls      ? "leaves the TLS handshake unfinished"
                                     : "does not identify itself");
  if (finished_ && now - *finished_ > closing_timeout)
    fail("does not close the connection");
  if (finished_)
    return;
  if (authenticated_ && now - last_received_ > limits_.idle_timeout)
    fail("has sent no heartbeat for " + std::to_string(limits_.idle_timeout.count()) + " ms");
  if (stage_ == stage::open && now - spoke_ >= heartbeat_every()) {
    writer_.add_heartbeat();
    spoke_ = now;
  }
}

connection::clock::time_point connection::next_timeout() const {
  if (finished_)
    return *finished_ + closing_timeout + std::chrono::milliseconds(1);
  auto next = authenticated_ ? last_received_ + limits_.idle_timeout : began_ + limits_.handshake_timeout;
  if (stage_ == stage::open)
    next = std::min(next, spoke_ + heartbeat_every());
  return next + std::chrono::milliseconds(1);
}

void connection::finish_sending(clock::time_point now) {
  finished_ = now;
  ERR_clear_error();
  if (tls_)
    SSL_shutdown(tls_.get());
  ::shutdown(socket_.get(), SHUT_WR);
}

/// Interval of heartbeats. The interval is at most half a second, because the peer's timeout may be shorter than this
/// end's timeout.
std::chrono::milliseconds connection::heartbeat_every() const {
  return std::min(std::chrono::milliseconds(500), limits_.idle_timeout / 6);
}

void connection::mark_authenticated(clock::time_point now) {
  authenticated_ = true;
  last_received_ = now;
  reader_.allow(limits_.message_bytes);
}

void connection::consumed(std::size_t bytes) {
  reader_.consumed(bytes);
  if (const auto credit = reader_.take_credit(); credit > 0)
    writer_.add_credit(credit);
}

} // namespace mneme
