import { expect, test } from "vitest";
import { requestFrom } from "../../../testing/src/gateway/proxy.ts";
import { LazyHeaders, type ProtocolName } from "../../../gateway/src/protocols/index.ts";
import type { Caller } from "../../../gateway/src/serve/index.ts";
import { compileForwardRules, type ForwardRules } from "../../src/forward/forward-rules.ts";
import { forwardHeader, ResponseMetadata } from "../../src/forward/forward-call.ts";

interface CallHeaders {
  readonly requestHeader: Headers;
  readonly responseHeader: Headers;
  readonly responseTrailer: Headers;
}

/** Returns a call with a header. `begin` records the response header. */
function createCaller(protocol: ProtocolName, requestHeader: Headers): { caller: Caller; begun: string[] } {
  const begun: string[] = [];
  const headers: CallHeaders = { requestHeader, responseHeader: new Headers(), responseTrailer: new Headers() };
  const request = Object.assign(requestFrom("192.0.2.9"), { protocol });
  const begin = (): void => void begun.push(...[...headers.responseHeader].flat());
  return { caller: Object.assign(Object.create(null), { request, headers, begin }), begun };
}

test.each<[rules: ForwardRules, protocol: ProtocolName, forwarded: readonly string[]]>([
  [{}, "rest", ["authorization", "Bearer a", "x-a", "authorization"]],
  [{}, "grpc", ["authorization", "Bearer a", "x-a", "authorization"]],
  [{}, "mcp", ["x-a", "authorization"]],
  [{ rename: { authorization: "x-b" } }, "mcp", ["x-a", "authorization"]],
  [{ allow: ["*", "Authorization"] }, "mcp", ["authorization", "Bearer a", "x-a", "authorization"]],
])("with the rules $0, a $1 call forwards $2 only", (rules, protocol, forwarded) => {
  const fields = compileForwardRules("request", { deny: ["x-forwarded-*"], ...rules });
  const sent = ["Authorization", "Bearer a", "X-A", "authorization"];
  for (const header of [new LazyHeaders(sent), new Headers({ Authorization: "Bearer a", "X-A": "authorization" })])
    expect(forwardHeader(createCaller(protocol, header).caller, fields).fields).toEqual(forwarded);
});

test("responseHeader.set adds its fields to the header before the response begins", () => {
  const { caller, begun } = createCaller("rest", new Headers());
  const rules = { deny: ["x-b"], set: () => ({ "x-set": "1" }) };
  const metadata = new ResponseMetadata(caller, compileForwardRules("response", rules));
  metadata.header(["x-a", "2", "x-b", "3", "x-a", "4"]);
  metadata.trailer(["x-set", "5", "x-b", "6", "x-c", "7"]);
  expect(begun).toEqual(["x-a", "2, 4", "x-set", "1"]);
  expect([...caller.headers.responseTrailer].flat()).toEqual(["x-c", "7", "x-set", "5"]);
});
