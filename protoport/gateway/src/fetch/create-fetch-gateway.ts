import { concatBytes, refuseUnknownOptions } from "../http/index.ts";
import { describeUnusedLabels, problem } from "../protobuf/index.ts";
import { messageTooLargeError, type PieceDecompression } from "../protocols/index.ts";
import {
  compileRoutes,
  createFaultReporter,
  createServer,
  servingOptionNames,
  type ServingOptions,
} from "../serve/index.ts";
import { createFetchHandler, type FetchHandler } from "./fetch-handler.ts";

/** A gateway that handles Fetch requests, and does not listen on a port. */
export interface FetchGateway {
  /** Handles one request over REST, Connect or gRPC-Web. Rejects only if `next` rejects. */
  readonly fetch: FetchHandler;
}

/**
 * Creates a gateway from Connect routes, for platforms without node.
 *
 * Bodies and messages may be compressed with gzip, unless `acceptCompression` is set. The limits on connections and the
 * timeouts for arriving requests have no effect, because the platform's server enforces its own limits.
 *
 * @throws Error that lists all problems in the HTTP rules and `requestPathPrefix`, or TypeError for unknown options
 */
export function createFetchGateway(options: ServingOptions): FetchGateway {
  refuseUnknownOptions(options, servingOptionNames, "createFetchGateway");
  const report = createFaultReporter(options.onFault);
  const routes = compileRoutes(options, { compressions: [webGzip] }, report);
  for (const line of describeUnusedLabels(options.visibility, routes.visibilityLabels)) console.warn(line);
  return { fetch: createFetchHandler({ server: createServer(options, routes, report, undefined) }) };
}

type Pieces = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

/** The gzip compression (RFC 1952) with the Compression Streams API. Some platforms support no other coding. */
export const webGzip: PieceDecompression = {
  name: "gzip",
  compress: (bytes) => readAllPieces(toStream(slices([bytes])).pipeThrough(new CompressionStream("gzip")), Infinity),
  decompress: (bytes, readMaxBytes) =>
    readAllPieces(decodeBody([bytes], "the message is not valid gzip"), readMaxBytes),
  // The compression ratio is not checked, because gzip bodies never exceed the allowed ratio of 1,032.
  decodePieces: (pieces) => decodeBody(pieces, "the body is not valid gzip"),
};

/**
 * Decodes gzip pieces as they arrive.
 *
 * @throws ConnectError `InvalidArgument` with `message` if the bytes are not gzip, and any error that `encoded` throws
 */
async function* decodeBody(encoded: Pieces, message: string): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let failure: unknown;
  const counted = async function* (): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    try {
      for await (const slice of slices(encoded)) {
        bytes += slice.byteLength;
        yield slice;
      }
    } catch (error) {
      failure = error;
      throw error;
    }
  };
  try {
    for await (const piece of toStream(counted()).pipeThrough(new DecompressionStream("gzip"))) yield piece;
  } catch {
    if (failure !== undefined) throw failure;
    // Some clients send an empty message as zero bytes, although zero bytes are not valid gzip.
    if (bytes > 0) throw problem("ERR_ENCODING_INVALID", message);
  }
}

/** Maximum encoded bytes per decoding step. Some platforms decode each piece completely, here to at most 4 MiB. */
const fetchSliceBytes = 4096;

async function* slices(pieces: Pieces): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  for await (const piece of pieces) {
    for (let at = 0; at < piece.byteLength; at += fetchSliceBytes)
      yield new Uint8Array(piece.subarray(at, at + fetchSliceBytes));
  }
}

function toStream(pieces: AsyncGenerator<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await pieces.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    // The call is not awaited, because `return` waits for the pending piece, which may never arrive.
    cancel: () => void pieces.return(undefined),
  });
}

/** Joins pieces. @throws ConnectError `ResourceExhausted` as soon as the pieces exceed `maxBytes` */
async function readAllPieces(pieces: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Uint8Array<ArrayBuffer>> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    if (bytes + piece.byteLength > maxBytes) throw messageTooLargeError(maxBytes);
    bytes += piece.byteLength;
    read.push(piece);
  }
  return new Uint8Array(concatBytes(read));
}
