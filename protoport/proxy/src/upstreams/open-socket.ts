import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { messageOf } from "@protoport/gateway/errors";
import { minFreedBytes } from "@protoport/gateway/exchange";
import type { UpstreamAddress } from "./upstream-address.ts";

/** TLS options for authenticating server and client. Node's `tls.connect` gets these options. */
export interface UpstreamTls extends SecureContextOptions {
  /** The name that the server's certificate must contain. Also sent as SNI. Defaults to the address's host. */
  readonly servername?: string;
}

/** {@link UpstreamTls} with parsed certificates and keys, shared by all connections. */
export interface PreparedTls {
  readonly secureContext: SecureContext;
  readonly servername: string | undefined;
  /** Whether the options have a client certificate. */
  readonly hasCertificate: boolean;
}

/** Parses certificates and keys. @throws TlsFilesError if a certificate or key is invalid */
export function prepareTls(tls: UpstreamTls = {}): PreparedTls {
  try {
    const hasCertificate = tls.cert !== undefined || tls.pfx !== undefined;
    return { secureContext: createSecureContext(tls), servername: tls.servername, hasCertificate };
  } catch (error) {
    throw new TlsFilesError(`cannot use the certificates and the key of tls: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Opens a socket to a server. With TLS, negotiates HTTP/2 by ALPN (RFC 9113 §3.2).
 *
 * @param tls - used for `https`
 * @param opened - called once with the socket or an error
 * @returns a function that cancels the attempt
 */
export function openSocket(
  address: UpstreamAddress,
  tls: PreparedTls | undefined,
  timeoutMs: number,
  opened: (result: Socket | Error) => void,
): () => void {
  const { scheme } = address;
  const socket = tls === undefined ? openTcp(address) : openTls(address, tls);
  // Nagle's algorithm is off, because the frames from one event loop turn are already written together.
  // equivalent mutant: Nagle's algorithm only delays frames on a slow network.
  socket.setNoDelay(true);
  const settle = (outcome: Socket | Error): void => {
    const result = outcome instanceof Error ? explainTlsError(outcome) : outcome;
    socket.off("error", settle).off("close", closed);
    clearTimeout(timer);
    if (result !== socket) socket.destroy();
    opened(result);
  };
  const closed = (): void => settle(new Error("the connection was closed"));
  const timer = setTimeout(() => settle(new Error(`timed out after ${timeoutMs} ms`)), timeoutMs);
  socket.once("error", settle).once("close", closed);
  socket.once(scheme === "http" ? "connect" : "secureConnect", () => {
    const isHttp2 = scheme === "http" || ("alpnProtocol" in socket && socket.alpnProtocol === "h2");
    settle(isHttp2 ? socket : new Error("the server does not offer HTTP/2"));
  });
  return () => settle(new Error("the attempt was cancelled"));
}

/**
 * Maximum bytes in one read from a socket. 64 KiB is node's default, and fits four frames. Message bodies are copied if
 * they are small compared with this size, so that they do not keep the chunk in memory.
 */
const maxReadBytes = 64 * 1024;

/** Opens a socket that reuses one read buffer, because node allocates 64 KiB for each read. */
function openTcp({ target }: UpstreamAddress): Socket {
  const memory = Buffer.allocUnsafeSlow(maxReadBytes);
  const callback = (bytes: number): boolean => {
    const chunk = memory.subarray(0, bytes);
    // equivalent mutant: copying a large chunk only takes time.
    return socket.emit("data", bytes < minFreedBytes ? copyChunk(chunk) : chunk);
  };
  const socket = connectTcp({ ...target, onread: { buffer: memory, callback } });
  return socket;
}

/** Copies a small chunk from the read buffer into a separate, unpooled buffer, so that messages can be slices. */
function copyChunk(chunk: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(chunk.byteLength);
  chunk.copy(copy);
  return copy;
}

function openTls({ target, host }: UpstreamAddress, { secureContext, servername }: PreparedTls): Socket {
  // An IP address must not be sent as the server name (RFC 6066 §3).
  const name = servername ?? (isIP(host) === 0 ? host : "");
  return connectTls({ secureContext, ...target, servername: name, ALPNProtocols: ["h2"] });
}

/** Thrown for a certificate or a key in an upstream's `tls` that cannot be used. */
export class TlsFilesError extends Error {}

const trust = "set tls.ca (--upstream-tls-ca) to the certificate of its authority";
const rejectedText = "the server rejected the client certificate of tls.cert (--upstream-tls-cert)";
const plaintext = "the server does not use TLS: use an http: address, or dns: without tls";

/** Advice that is added to an error's message, by node's error code. */
const advice: ReadonlyMap<string, string> = new Map([
  ["ERR_TLS_CERT_ALTNAME_INVALID", "set tls.servername (--upstream-tls-servername) to a name of the certificate"],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", trust],
  ["SELF_SIGNED_CERT_IN_CHAIN", trust],
  ["UNABLE_TO_GET_ISSUER_CERT", trust],
  ["UNABLE_TO_GET_ISSUER_CERT_LOCALLY", trust],
  ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", trust],
]);

/** Messages that replace OpenSSL's messages, by the end of node's error code. */
const messages: readonly (readonly [code: string, message: string])[] = [
  ["ALERT_CERTIFICATE_REQUIRED", missingClientCertificate("requires")],
  ["ALERT_BAD_CERTIFICATE", rejectedText],
  ["ALERT_CERTIFICATE_EXPIRED", rejectedText],
  ["ALERT_CERTIFICATE_UNKNOWN", rejectedText],
  ["ALERT_UNKNOWN_CA", rejectedText],
  ["WRONG_VERSION_NUMBER", plaintext],
  ["PACKET_LENGTH_TOO_LONG", plaintext],
];

/** Returns the message for a server that requires, or may require, a client certificate. */
export function missingClientCertificate(verb: "requires" | "may require"): string {
  return `the server ${verb} a client certificate: set tls.cert and tls.key (--upstream-tls-cert, --upstream-tls-key)`;
}

/** Returns a connection error with a message that names the option to change, if TLS has failed. */
export function explainTlsError(error: Error): Error {
  const code = "code" in error ? String(error.code) : "";
  const [, replaced] = messages.find(([end]) => code.startsWith("ERR_SSL_") && code.endsWith(end)) ?? [];
  if (replaced !== undefined) return new Error(replaced, { cause: error });
  const hint = advice.get(code);
  return hint === undefined ? error : new Error(`${error.message}; ${hint}`, { cause: error });
}
