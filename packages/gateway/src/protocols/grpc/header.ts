import type { Exchange } from "../../exchange/index.ts";
import type { EnvelopedHeader } from "../shared/enveloped-wire.ts";
import { negotiateEncodings } from "../shared/message-encodings.ts";
import type { Rpc } from "../rpc.ts";
import { noTimeout, readGrpcTimeout } from "../shared/timeouts.ts";

/** Reads the header of a call of gRPC or gRPC-Web. */
export function readGrpcHeader({ common }: Exchange, { options }: Rpc): EnvelopedHeader {
  const { grpcEncoding, grpcAcceptEncoding } = common;
  const encodings = negotiateEncodings(
    options.acceptCompression,
    grpcEncoding,
    grpcAcceptEncoding,
    "grpc-accept-encoding",
  );
  const timeout = common.grpcTimeout === null ? noTimeout : readGrpcTimeout(common, options.maxTimeoutMs);
  return { encodings, timeout, encodingName: "grpc-encoding" };
}
