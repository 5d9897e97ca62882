import { expect, test } from "vitest";
import { exchangeHttp1, type Field, startKitchenSink } from "@protoport/testing";
import { KitchenSink, startProxy, type TestProxy } from "@protoport/testing/proxy";
import { toProxySettings } from "../../../../src/command/proxy-settings.ts";
import { shownNames } from "../../../../src/command/access-log.ts";
import { readProxyConfiguration } from "../../../../src/settings/index.ts";

interface Refusal {
  readonly request: string;
  readonly body?: string;
  readonly header?: readonly Field[];
  /** The setting that the message names, or `undefined` for none. */
  readonly named: string | undefined;
}

const sinks = "POST /v1/sinks";
const unary = "POST /kitchensink.v1.KitchenSink/Create";

const refusals: readonly Refusal[] = [
  { request: "GET /v1/query?x=1", named: "rest.options: [lenient]" },
  { request: "DELETE /v1/sinks/7?f_int64=7", named: "rest.options: [lenient]" },
  { request: "GET /v1/query?labels[a]=b", named: "rest.options: [mapsInQuery]" },
  { request: "DELETE /v1/sinks/7", body: "{}", named: "rest.options: [ignoreBodies]" },
  { request: "PUT /v1/sinks/7", body: '{"fInt64":"7"}', named: "rest.options: [sameValueAsPath] or [lenient]" },
  { request: sinks, body: JSON.stringify({ fString: "a".repeat(1e6) }), named: "requestBytes" },
  { request: "GET /v1/query", header: [["x-large", "x".repeat(9_000)]], named: "headerBytes" },
  { request: `GET /v1/query?f_string=${"x".repeat(70_000)}`, named: undefined },
  { request: sinks, body: "{}", header: [["content-encoding", "x"]], named: undefined },
  { request: unary, body: '{"any":{"@type":"type.googleapis.com/a.B"}}', named: undefined },
];

const small = "requestBytes: 1000000\nheaderBytes: 8192";
const large = "requestBytes: 2000000\nheaderBytes: 65536\n";
const all = `${large}rest: { options: [lenient, mapsInQuery, ignoreBodies, sameValueAsPath] }`;

test("the error for a refused request names only settings of the command", async () => {
  await using upstream = await startKitchenSink();
  const baseUrl = `http://${upstream.address.address}:${upstream.address.port}`;
  const startWith = async (set: string): Promise<TestProxy> => {
    const text = `upstreams: [{ addresses: ["${baseUrl}"], descriptors: reflection }]\n${set}`;
    const { rest, ...settings } = await toProxySettings(readProxyConfiguration({ name: "proxy.yaml", text }, {}));
    const [readMaxBytes, limits] = [settings.requestBytes, { headerBytes: settings.headerBytes }];
    return startProxy(baseUrl, [KitchenSink.file], { nameOptions: shownNames, rest, readMaxBytes, limits });
  };
  await using refusing = await startWith(small);
  await using accepting = await startWith(all);
  for (const { request, body, header = [], named } of refusals) {
    const [httpMethod = "", path = ""] = request.split(" ");
    const content = body === undefined ? [] : [["content-type", "application/json"] as const];
    const parts = { header: [...content, ...header], ...(body !== undefined && { body: Buffer.from(body) }) };
    const sent = { httpMethod, path, ...parts };
    const refused = await exchangeHttp1(refusing.address, sent);
    const [, name] = /; to accept it, set the server option (.*?)"/.exec(refused.body.toString()) ?? [];
    expect([refused.httpStatus >= 400, name]).toEqual([true, named]);
    if (named !== undefined) expect((await exchangeHttp1(accepting.address, sent)).httpStatus).toBe(200);
  }
});
