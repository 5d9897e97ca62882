import { expect, test } from "vitest";
import { parsePathTemplate } from "../../gateway/src/protocols/rest/rules/path-template.ts";
import { fastifyUrlsOf } from "../src/fastify-urls.ts";

// The suite frameworks sends requests to these URLs in Fastify.

test.each<readonly [template: string, urls: readonly string[]]>([
  ["/v1/{sensor}", ["/v1/:p1"]],
  ["/v1/{sensor}:read", ["/v1/:p1(.+)::read"]],
  ["/v1/{sensor}:%C3%BC", ["/v1/:p1"]],
  ["/v1/beds:read", ["/v1/beds::read"]],
  ["/v1/a%3Ab", ["/v1/:p1"]],
  ["/v1/{sensor=beds/*}/reading", ["/v1/beds/:p2/reading"]],
  ["/v1/{sensor=**}", ["/v1/*", "/v1"]],
  ["/v1/{sensor=**}:read", ["/v1/*", "/v1::read"]],
  ["/v1/{sensor=**}/reading", ["/v1/*"]],
  ["/{sensor=**}", ["/*"]],
])("the path template %s is registered as %j in Fastify", (template, urls) => {
  const route = { httpMethods: ["GET"], path: template, template: parsePathTemplate(template), procedure: undefined };
  expect(fastifyUrlsOf(route, { ofFastify: "", ofGateway: "" })).toEqual(urls);
});

test.each([
  ["only Fastify's", { ofFastify: "/app", ofGateway: "" }, "/v1/:p1", "/a.B/C"],
  ["only the gateway's", { ofFastify: "", ofGateway: "/api" }, "/api/v1/:p2", "/api/a.B/C"],
  ["both", { ofFastify: "/app", ofGateway: "/api" }, "/api/v1/:p2", "/api/a.B/C"],
])("fastifyUrlsOf omits Fastify's prefix and keeps the gateway's (set: %s)", (_name, prefixes, template, procedure) => {
  const prefix = prefixes.ofFastify + prefixes.ofGateway;
  const urlsOf = (path: string, parsed?: ReturnType<typeof parsePathTemplate>): readonly string[] =>
    fastifyUrlsOf({ httpMethods: ["GET"], path: prefix + path, template: parsed, procedure: undefined }, prefixes);
  expect(urlsOf("/v1/{sensor}", parsePathTemplate("/v1/{sensor}"))).toEqual([template]);
  expect(urlsOf("/a.B/C")).toEqual([procedure]);
});
