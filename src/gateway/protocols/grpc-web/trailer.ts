import { trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { toUtf8 } from "../../carriers/index.ts";
import { trailerFlag, writeEnvelope } from "../envelope.ts";
import { statusOk } from "../grpc/status.ts";
import { headerFieldsToSend, LazyHeaders } from "../lazy-headers.ts";

// The end of nearly every response: an envelope with "grpc-status: 0".
const statusOkEnvelope = writeEnvelope(trailerFlag, toUtf8("grpc-status: 0\r\n"));

/** Returns the last envelope of a response, which holds its trailer section. */
export function trailerEnvelope(trailer: Headers): Uint8Array {
  if (trailer instanceof LazyHeaders && trailer.pristine && trailer.fields === statusOk) return statusOkEnvelope;
  // A trailer that an interceptor put in its place lacks the status.
  const section = trailer instanceof LazyHeaders ? trailer : new LazyHeaders(headerFieldsToSend(trailer, statusOk));
  return writeEnvelope(trailerFlag, trailerSerialize(section));
}
