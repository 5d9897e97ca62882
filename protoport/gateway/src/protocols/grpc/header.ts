import type { Exchange } from "../../http/index.ts";
import type { EnvelopedHeader } from "../shared/enveloped-wire.ts";
import { negotiateEncodings } from "../shared/message-encodings.ts";
import type { Rpc } from "../rpc.ts";
import { readGrpcTimeout } from "../shared/timeouts.ts";

/** Reads the header of a gRPC or gRPC-Web call. */
export function readGrpcHeader(exchange: Exchange, { options }: Rpc): EnvelopedHeader {
  const encodings = negotiateEncodings(
    options.acceptCompression,
    exchange.get("grpc-encoding"),
    exchange.get("grpc-accept-encoding"),
    "grpc-accept-encoding",
  );
  const timeout = readGrpcTimeout(exchange.get("grpc-timeout"), options.maxTimeoutMs);
  return { encodings, timeout, encodingName: "grpc-encoding" };
}
