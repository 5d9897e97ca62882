import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { CaseRequest } from "./case.ts";
import {
  type HttpResponse,
  bodyLimitBytes,
  bodyOf,
  type Exchange,
  fieldOf,
  headerLimitBytes,
  headerOf,
  NoResponse,
} from "./response.ts";
import { readHttp1Response } from "./http1-response.ts";

/**
 * Number of bytes between two attempts to parse a response. Attempts are limited, because each attempt parses all bytes
 * again.
 */
const readStepBytes = 16 * 1024;

/**
 * Returns a function that sends requests over HTTP/1.1 to `base`. Each request has a new connection, and is sent
 * unchanged.
 */
export function createHttp1Exchange(base: URL): Exchange {
  return (request, timeoutMs) => {
    const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>();
    const socket = open(base);
    const timer = setTimeout(() => fail("timeout", `did not respond within ${timeoutMs} ms`), timeoutMs);
    const pieces: Buffer[] = [];
    let length = 0;
    let readAt = 0;
    let isConnected = false;

    function fail(kind: NoResponse["kind"], message: string): void {
      reject(new NoResponse(kind, message));
    }
    function rejectWith(message: string): void {
      if (isConnected) fail("closed", `closed the connection (${message.trim()})`);
      else fail("no server", message);
    }
    function read(isClosed: boolean): void {
      readAt = length;
      try {
        const response = readHttp1Response(Buffer.concat(pieces), request.method, isClosed);
        if (response !== undefined) resolve(response);
      } catch (error) {
        reject(error);
      }
    }
    socket.on("connect", () => void (isConnected = true));
    socket.on("data", (piece: Buffer) => {
      pieces.push(piece);
      length += piece.length;
      if (length > headerLimitBytes + 2 * bodyLimitBytes)
        fail("too large", `sent more than ${headerLimitBytes + 2 * bodyLimitBytes} bytes`);
      else if (length < readStepBytes || length - readAt >= readStepBytes) read(false);
    });
    // After the first received byte, a socket error counts as the end of the response, because a server may close the
    // connection before it has received the complete request body.
    socket.on("end", () => read(true));
    socket.on("error", ({ message }) => (length > 0 ? read(true) : rejectWith(message)));
    socket.on("close", () => fail("closed", "closed the connection before a response"));
    socket.write(toBytes(request, base));
    return promise.finally(() => {
      clearTimeout(timer);
      socket.destroy();
    });
  };
}

function open(base: URL): Socket {
  const host = base.hostname.replace(/^\[|\]$/g, "");
  const isTls = base.protocol === "https:";
  const port = Number(base.port === "" ? (isTls ? 443 : 80) : base.port);
  if (!isTls) return connectTcp({ host, port });
  // An IP address is not a valid server name (RFC 6066 §3).
  return connectTls({ host, port, ALPNProtocols: ["http/1.1"], ...(isIP(host) === 0 ? { servername: host } : {}) });
}

function toBytes(request: CaseRequest, base: URL): Buffer {
  const body = bodyOf(request);
  const isChunked = body !== undefined && request.chunkBytes !== undefined;
  const fields = [...headerOf(request)];
  if (fieldOf(fields, "host") === undefined) fields.unshift(["host", base.host]);
  if (isChunked) fields.push(["transfer-encoding", "chunked"]);
  else if (body !== undefined) fields.push(["content-length", String(body.length)]);
  fields.push(["connection", "close"]);
  const head = [
    `${request.method} ${targetOf(request, base)} HTTP/1.1`,
    ...fields.map(([name, value]) => `${name}: ${value}`),
  ];
  const begin = Buffer.from(`${head.join("\r\n")}\r\n\r\n`, "latin1");
  if (body === undefined) return begin;
  return Buffer.concat([begin, isChunked ? encodeChunks(body, request.chunkBytes) : body]);
}

/** Returns the path of `base`, followed by the request target. */
export function targetOf({ target }: CaseRequest, base: URL): string {
  return `${base.pathname.replace(/\/$/, "")}${target}`;
}

function encodeChunks(body: Buffer, size = 1): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const chunk = body.subarray(at, at + size);
    chunks.push(Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from("\r\n"));
  }
  return Buffer.concat([...chunks, Buffer.from("0\r\n\r\n")]);
}
