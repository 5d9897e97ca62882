import type { ConnectError } from "@connectrpc/connect";
import {
  type BodyReply,
  type BodyTarget,
  type BodyWire,
  type CallTarget,
  messageTooLargeError,
  type AdmitProcedure,
} from "../protocols/index.ts";
import { type BodyReader, readBody } from "./read-message.ts";
import { type AnyCall, ServedRequest } from "./request.ts";

type OpenCall = (request: ServedRequest, target: CallTarget) => void;

/** Reads an admitted request's body, which names the RPC. `check` admits or refuses this RPC. */
export function serveBody(
  request: ServedRequest,
  target: BodyTarget,
  openCall: OpenCall,
  check: AdmitProcedure | undefined,
): void {
  request.beginBody(new BodyCall(request, target.open(ServedRequest.exchangeOf(request)), openCall, check));
}

/** A call before the RPC is known. Ends with a reply, an error, a disconnect, or the start of the named call. */
class BodyCall implements AnyCall, BodyReader {
  readonly request: ServedRequest;
  readonly wire: BodyWire;
  readonly #openCall: OpenCall;
  readonly #check: AdmitProcedure | undefined;

  constructor(request: ServedRequest, wire: BodyWire, openCall: OpenCall, check: AdmitProcedure | undefined) {
    this.request = request;
    this.wire = wire;
    this.#openCall = openCall;
    this.#check = check;
  }

  read(): void {
    readBody(this);
  }

  received(body: Uint8Array | undefined): void {
    const { request, wire } = this;
    if (body === undefined) return request.fail(messageTooLargeError(wire.body.limitBytes));
    try {
      const target = wire.readTarget(body, request);
      if (target.kind === "reply") return this.#reply(target);
      this.#admit(target);
    } catch (error) {
      request.fail(error);
    }
  }

  /** Opens the call if the function that `admit` has returned accepts the procedure. */
  #admit(target: CallTarget): void {
    const { request } = this;
    const { name, method } = target.rpc;
    // Hooks that run later see the procedure.
    request.procedure = name;
    request.stream = target.kind === "stream";
    const checked = this.#check?.(name, method);
    if (checked === undefined) return this.#openCall(request, target);
    Promise.resolve(checked)
      .then(() => this.#openCall(request, target))
      .catch((error: unknown) => request.fail(error));
  }

  #reply({ httpStatus, fields, body }: BodyReply): void {
    ServedRequest.exchangeOf(this.request).respond(httpStatus, fields, body);
    this.request.settle(undefined);
  }

  writeError(error: ConnectError, mayCompress: boolean): void | Promise<void> {
    return this.wire.writeError(error, mayCompress);
  }
}
