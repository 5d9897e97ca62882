import type { ConnectError } from "@connectrpc/connect";
import {
  type BodyReply,
  type BodyTarget,
  type BodyWire,
  type CallTarget,
  messageTooLarge,
} from "../protocols/index.ts";
import { type BodyReader, readBody } from "./read-message.ts";
import { type AnyCall, exchangeOf, type ServedRequest } from "./request.ts";

/** Opens the call that a body names. */
type OpenCall = (request: ServedRequest, target: CallTarget) => void;

/** Reads the body of an admitted request to find out which RPC it calls. */
export function serveBody(request: ServedRequest, target: BodyTarget, openCall: OpenCall): void {
  request.beginBody(new BodyCall(request, target.open(exchangeOf(request)), openCall));
}

/**
 * A call whose RPC is not known yet. Ends with a reply, with an error, when the client disconnects, or when the named
 * call starts.
 */
class BodyCall implements AnyCall, BodyReader {
  readonly request: ServedRequest;
  readonly wire: BodyWire;
  readonly #openCall: OpenCall;

  constructor(request: ServedRequest, wire: BodyWire, openCall: OpenCall) {
    this.request = request;
    this.wire = wire;
    this.#openCall = openCall;
  }

  read(): void {
    readBody(this);
  }

  received(body: Uint8Array | undefined): void {
    const { request, wire } = this;
    if (body === undefined) return request.fail(messageTooLarge(wire.body.limitBytes));
    try {
      const target = wire.readTarget(body, request);
      if (target.kind === "reply") return this.#reply(target);
      // From here on, hooks see the procedure.
      request.procedure = target.rpc.name;
      request.stream = target.kind === "stream";
      this.#openCall(request, target);
    } catch (error) {
      request.fail(error);
    }
  }

  #reply({ httpStatus, fields, body }: BodyReply): void {
    exchangeOf(this.request).respond(httpStatus, fields, body);
    this.request.settle(undefined);
  }

  writeError(error: ConnectError): void | Promise<void> {
    return this.wire.writeError(error);
  }
}
