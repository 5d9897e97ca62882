import type { Interceptor, Transport } from "@connectrpc/connect";
import { type UniversalClientFn, universalClientResponseFromFetch } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { concatBytes } from "@protoport/gateway/exchange";
import { messageBytesMax } from "@protoport/gateway/messages";

/** Settings for calls to RPCs without a rule. */
export interface ConnectCalls {
  readonly baseUrl: string;
  readonly fetch: typeof fetch;
  readonly interceptors: readonly Interceptor[];
  readonly readMaxBytes: number;
  readonly jsonOptions: object;
}

/** Creates the transport for RPCs without a rule: Connect's protocol with JSON, without streaming request bodies. */
export function createConnectFallback(calls: ConnectCalls): Transport {
  const { baseUrl, interceptors, readMaxBytes, jsonOptions } = calls;
  const httpClient: UniversalClientFn = async ({ url, method, header, body, signal }) => {
    const pieces: Uint8Array[] = [];
    for await (const piece of body ?? []) pieces.push(piece);
    const bufferedBody = body === undefined ? {} : { body: new Uint8Array(concatBytes(pieces)) };
    const init = { method, headers: header, redirect: "manual", ...(signal && { signal }), ...bufferedBody } as const;
    return universalClientResponseFromFetch(await calls.fetch(url, init));
  };
  return createTransport({
    httpClient,
    baseUrl,
    useBinaryFormat: false,
    interceptors: [...interceptors],
    jsonOptions,
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 0,
    readMaxBytes,
    writeMaxBytes: messageBytesMax,
  });
}
