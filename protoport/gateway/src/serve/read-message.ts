import { type BodyReceiver, noBytes } from "../http/index.ts";
import type { Wire } from "../protocols/index.ts";
import { ServedRequest } from "./request.ts";

/** Reads a request body, either for a call or to find the call that the body names. */
export interface BodyReader extends BodyReceiver {
  readonly request: ServedRequest;
  readonly wire: Pick<Wire, "body">;
}

/** Reads a request body unless the request has no body or the wire ignores bodies. */
export function readBody(reader: BodyReader): void {
  const { body } = ServedRequest.exchangeOf(reader.request);
  const plan = reader.wire.body;
  if (body === undefined || plan === undefined) reader.received(noBytes);
  else body.read(plan, reader);
}
