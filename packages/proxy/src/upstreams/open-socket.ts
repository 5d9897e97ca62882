import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { freedBytesMin } from "@plantstore/gateway/exchange";
import type { UpstreamAddress } from "./upstream-address.ts";

/** How a server is authenticated, and we to it: options of node's `tls.connect`. */
export interface UpstreamTls extends SecureContextOptions {
  /** The name that the certificate must have, and that is sent as SNI, instead of the host of the address. */
  readonly servername?: string;
}

/** {@link UpstreamTls} whose certificates and keys are read, once for all connections. */
export interface PreparedTls {
  readonly secureContext: SecureContext;
  readonly servername: string | undefined;
}

/** Reads certificates and keys. @throws Error for those that cannot be read */
export function prepareTls(tls: UpstreamTls = {}): PreparedTls {
  return { secureContext: createSecureContext(tls), servername: tls.servername };
}

/**
 * Opens a socket to a server, and under TLS agrees on HTTP/2 by ALPN (RFC 9113 §3.2).
 *
 * @param tls - for `https`, what authenticates both sides
 * @param opened - called once, with the socket or with why there is none
 * @returns a function that gives up
 */
export function openSocket(
  address: UpstreamAddress,
  tls: PreparedTls | undefined,
  timeoutMs: number,
  opened: (result: Socket | Error) => void,
): () => void {
  const { scheme } = address;
  const socket = tls === undefined ? openTcp(address) : openTls(address, tls);
  // Frames that leave in one turn are one write already. No test can tell: without it, some wait for a slow network.
  socket.setNoDelay(true);
  const settle = (result: Socket | Error): void => {
    socket.off("error", settle).off("close", closed);
    clearTimeout(timer);
    if (result !== socket) socket.destroy();
    opened(result);
  };
  const closed = (): void => settle(new Error("the connection was closed"));
  const timer = setTimeout(() => settle(new Error(`no connection within ${timeoutMs} ms`)), timeoutMs);
  socket.once("error", settle).once("close", closed);
  socket.once(scheme === "http" ? "connect" : "secureConnect", () => {
    const isHttp2 = scheme === "http" || ("alpnProtocol" in socket && socket.alpnProtocol === "h2");
    settle(isHttp2 ? socket : new Error("the server does not offer HTTP/2"));
  });
  return () => settle(new Error("it is not wanted any more"));
}

/**
 * Bytes that are read from a socket at once. 64 KiB, as by node: four frames, so that no piece of a body is so much of it
 * that it is kept instead of copied.
 */
const readBytesMax = 64 * 1024;

/** Opens a socket that reads into the same memory again and again: node sets 64 KiB aside for each read. */
function openTcp({ target }: UpstreamAddress): Socket {
  const memory = Buffer.allocUnsafeSlow(readBytesMax);
  const callback = (bytes: number): boolean => {
    const chunk = memory.subarray(0, bytes);
    return socket.emit("data", bytes < freedBytesMin ? unshared(chunk) : chunk);
  };
  const socket = connectTcp({ ...target, onread: { buffer: memory, callback } });
  return socket;
}

/** Copies a small chunk. In memory of its own, outside node's pool, its messages are kept instead of copied one by one. */
function unshared(chunk: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(chunk.byteLength);
  chunk.copy(own);
  return own;
}

function openTls({ target, host }: UpstreamAddress, { secureContext, servername }: PreparedTls): Socket {
  // RFC 6066 §3: an address is not a server name.
  const name = servername ?? (isIP(host) === 0 ? host : "");
  return connectTls({ secureContext, ...target, servername: name, ALPNProtocols: ["h2"] });
}
