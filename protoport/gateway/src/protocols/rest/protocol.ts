import { type Exchange, planBody } from "../../http/index.ts";
import { type ErrorRecordWriter, httpStatusOf, type RestBinding } from "./rules/index.ts";
import type { CallTarget, Protocol, ProtocolParts, Wire } from "../protocol.ts";
import type { Rpc } from "../rpc.ts";
import { RestByteStreamWire, RestMessageStreamWire } from "./stream-wire.ts";
import { RestClientStreamWire, RestUnaryWire } from "./unary-wire.ts";
import { toErrorResponse } from "./error-response.ts";
import { createRepresentations, type MatchedRule, type RestRule } from "./representation.ts";

/** Creates the REST protocol, which the `google.api.http` rules of RPCs define. */
export function createRest({ rpcs, restRoutes, writeErrorRecord }: ProtocolParts): Protocol {
  const byName = new Map(rpcs.map((rpc) => [rpc.name, rpc]));
  const rules = new Map<RestBinding, RestRule>();
  for (const binding of restRoutes.bindings) {
    const rpc = byName.get(binding.procedure);
    if (rpc !== undefined) rules.set(binding, createRule(rpc, binding, writeErrorRecord));
  }
  const rest: Protocol = {
    name: "rest",
    hasHttpStatus: true,
    // REST requests reach an RPC only by the paths in the RPC's rules.
    targetsOf: () => [],
    find({ httpMethod, literalsAsSent }, path, query) {
      const found = restRoutes.match(httpMethod, path, literalsAsSent);
      if (found.kind !== "binding") return found;
      const rule = rules.get(found.binding);
      if (rule === undefined) return undefined;
      return new RestTarget(rest, rule, found.captures, query);
    },
    handlesUnmatched: () => true,
    openError(exchange, fields, rpc) {
      return {
        writeError: (error) => {
          const failure = { httpStatus: httpStatusOf(error), procedure: rpc?.name };
          const response = toErrorResponse(writeErrorRecord, error, failure, fields, false);
          exchange.respond(response.httpStatus, response.fields, response.body);
        },
      };
    },
  };
  return rest;
}

function createRule(rpc: Rpc, binding: RestBinding, writeErrorRecord: ErrorRecordWriter): RestRule {
  const body = binding.bodyFormat.kind === "ignored" ? undefined : planBody(rpc.options.readMaxBytes);
  const representations = rpc.kind === "stream" ? undefined : createRepresentations(rpc, binding, writeErrorRecord);
  return { rpc, binding, body, writeErrorRecord, representations };
}

class RestTarget implements CallTarget, MatchedRule {
  readonly kind: Rpc["kind"];
  readonly protocol: Protocol;
  readonly rpc: Rpc;
  readonly rule: RestRule;
  readonly captures: readonly string[];
  readonly query: string;

  constructor(protocol: Protocol, rule: RestRule, captures: readonly string[], query: string) {
    this.kind = rule.rpc.kind;
    this.protocol = protocol;
    this.rpc = rule.rpc;
    this.rule = rule;
    this.captures = captures;
    this.query = query;
  }

  get pathTemplate(): string {
    return this.rule.binding.pattern.pathTemplate;
  }

  needsBody(contentType: string | null): boolean {
    const { binding, body } = this.rule;
    return body !== undefined && binding.bodyProblem(contentType, false) === undefined;
  }

  open(exchange: Exchange): Wire {
    const { rpc, binding } = this.rule;
    if (rpc.kind === "unary") return new RestUnaryWire(exchange, this);
    if (rpc.method.methodKind === "client_streaming") return new RestClientStreamWire(exchange, this);
    const OpenedWire = binding.toRaw === undefined ? RestMessageStreamWire : RestByteStreamWire;
    return new OpenedWire(exchange, this);
  }
}
