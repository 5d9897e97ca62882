import { expect, test } from "vitest";
import { createBearerAuth, createResourceMetadata, limitRates, openTokenVerifier } from "../../../auth/src/index.ts";
import { createGateway } from "../../../gateway/src/index.ts";
import { drainGracefully, Readiness } from "../../../gateway/src/health/index.ts";
import { createMcp } from "../../../gateway/src/mcp/index.ts";
import { createOpenApi } from "../../../gateway/src/openapi/entry.ts";
import { createUpstream } from "../../../proxy/src/client/entry.ts";
import { createProxy } from "../../../proxy/src/create-proxy.ts";
import { settingRows } from "../../../proxy/src/settings/setting-flags.ts";
import { silentLog } from "../../../telemetry/src/logs/index.ts";
import { descriptorSetOf } from "../../../testing/src/gateway/descriptor-set.ts";
import { acceptedNames } from "../../../testing/src/options/unknown-options.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

// An option has one name in proxy.yaml, on the command line and in code. Every name is from
// the table by which it is read. A difference needs a reason here.

const routes = (): void => undefined;
const proxied = { upstream: "http://127.0.0.1:1", descriptors: descriptorSetOf(KitchenSink.file) };
const addresses = "http://127.0.0.1:1";
const verifier = { verify: () => ({ kind: "unknown", reason: "none" }) as const };
const url = new URL("https://api.example");

/** Functions that refuse an object with an unknown name. The refusal lists the names that exist. */
const functions: Readonly<Record<string, (wrong: object) => unknown>> = {
  createProxy: (wrong) => createProxy({ upstreams: [], ...wrong }),
  listen: (wrong) => createGateway({ routes }).listen({ host: "127.0.0.1", port: 0, ...wrong }),
  upstream: (wrong) => createProxy({ upstreams: [{ ...proxied, ...wrong }] }),
  createUpstream: (wrong) => createUpstream({ addresses, ...wrong }),
  headerRules: (requestHeader) => createProxy({ upstreams: [{ ...proxied, requestHeader }] }),
  rest: (rest) => createGateway({ routes, rest }),
  service: (wrong) =>
    createGateway({ routes: (router) => router.service(KitchenSink, {}), rest: { service: () => wrong } }),
  cors: (wrong) => createGateway({ routes, cors: { origins: "*", ...wrong } }),
  openTokenVerifier: (wrong) => openTokenVerifier(wrong, silentLog),
  jwt: (wrong) => openTokenVerifier({ jwt: [{ issuer: "a", audiences: ["b"], ...wrong }] }, silentLog),
  introspection: (wrong) =>
    openTokenVerifier({ introspection: { url: "a", clientId: "b", clientSecretFile: "c", ...wrong } }, silentLog),
  createBearerAuth: (wrong) => createBearerAuth(verifier, { realm: "r", ...wrong }),
  resource: (wrong) => createResourceMetadata({ name: "n", publicUrl: url, issuers: [], scopes: [], ...wrong }),
  limitRates: (wrong) => limitRates(() => undefined, wrong),
  visibility: (visibility) => createProxy({ upstreams: [], visibility: { allow: [], ...visibility } }),
  createOpenApi: (wrong) => createOpenApi([], { info: { title: "t", version: "1" }, ...wrong }),
  createMcp: (wrong) => createMcp({ tools: [], ...wrong }),
  drain: (wrong) =>
    drainGracefully({ drain: async () => undefined }, new Readiness({}), { delayMs: 0, timeoutMs: 0, ...wrong }),
};

async function optionsOf(name: string): Promise<readonly string[]> {
  const names = await acceptedNames((wrong) => functions[name]?.(wrong));
  if (names.length === 0) throw new Error(`${name} does not list its options`);
  return names;
}

/** The names in Node's `tls.connect` and `tls.createServer`. */
const tlsNames = ["ca", "cert", "key", "servername"];

/** The functions whose options are settings in a section of proxy.yaml. */
// oxfmt-ignore
const sections: Readonly<Record<string, readonly (keyof typeof functions)[]>> = {
  "": ["createProxy"], listen: ["listen"], admin: ["listen"], "upstreams[]": ["upstream", "createUpstream"],
  "upstreams[].requestHeader": ["headerRules"], "upstreams[].responseHeader": ["headerRules"], rest: ["rest"],
  "rest.services[]": ["service"], authentication: ["openTokenVerifier", "createBearerAuth", "resource"],
  "authentication.jwt[]": ["jwt"], "authentication.introspection": ["introspection"], rateLimit: ["limitRates"],
  cors: ["cors"], openapi: ["createOpenApi"], mcp: ["createMcp"], visibility: ["visibility"], drain: ["drain"],
};

const command = "only the command has it";
const section = "a section, whose settings are options of other functions";
const infoObject = "a member of OpenAPI's Info Object, the option info of createOpenApi in code";
const serviceConfig = "the names of gRPC's service config; code has methodSettings";

/** proxy.yaml settings that are not options with the same name, each with the reason. */
const settingDifferences: Readonly<Record<string, string>> = {
  listen: section,
  admin: section,
  authentication: section,
  rateLimit: section,
  drain: section,
  methodConfig: serviceConfig,
  headerBytes: "limits.headerBytes in code, which has other limits; also the limit of upstreams",
  requestBytes: "readMaxBytes in code, which is Connect's name; a file says of which direction",
  responseBytes: "readMaxBytes of each upstream in code, which is Connect's name; a file says of which direction",
  "upstreams[].timeoutMaxMs":
    "maxTimeoutMs in code, the order of all limits; the setting is as its flag --timeout-max-ms",
  validate: "the option validation, which is an object in code",
  validateReflected: "the option validation, which is an object in code",
  docs: "createDocsPage in code",
  openapi: section,
  "openapi.title": infoObject,
  "openapi.version": infoObject,
  "openapi.license": infoObject,
  "openapi.license.name": infoObject,
  "openapi.license.identifier": infoObject,
  "openapi.license.url": infoObject,
  accessLog: command,
  requireAll: command,
  wait: command,
  "rest.json.names": "useProtoFieldName of jsonOptions in code, the name of protobuf-es",
  "rest.json.enums": "enumAsInteger of jsonOptions in code, the name of protobuf-es",
  "rest.json.unpopulated": "alwaysEmitImplicit of jsonOptions in code, the name of protobuf-es",
  "rest.json.int64": "int64Numbers of each service in code",
  "rest.options": "names of boolean options of services, as `--rest` has them",
  "rest.services": "the function `service` in code",
  "rest.services[].name": "the argument of the function `service` in code",
  "rest.services[].options": "names of boolean options of services, as `--rest` has them",
  "authentication.forward": command,
};

/** Flags whose name differs from the end of their setting's path, each with the reason. */
// oxfmt-ignore
const flagDifferences: Readonly<Record<string, string>> = {
  reflection: "a value of the setting descriptors", "reflect-header": "the name in buf curl and grpcurl",
  rest: "the switches are most of what `rest` has", cors: "origins are the only required setting of `cors`",
  mcp: "tools are the only setting of `mcp`", visibility: "labels are the only setting of `visibility`",
};

const rows = settingRows();

test.each(rows.filter(({ path }) => !path.startsWith("methodConfig[")))(
  "the setting $path of proxy.yaml has the name of its option, except for listed differences",
  async ({ path }) => {
    const [, parent = "", name = ""] = /^(?:(.*)\.)?([^.]+)$/.exec(path) ?? [];
    const owners = sections[parent] ?? [];
    const known = parent.endsWith("tls") ? tlsNames : (await Promise.all(owners.map(optionsOf))).flat();
    expect([path, known.includes(name)]).toEqual([path, !(path in settingDifferences)]);
  },
);

/** Returns the flags that a path may have: its ends, with lists in the singular or the plural. */
function flagsOf(path: string): readonly string[] {
  const parts = path.replaceAll("[]", "").split(".").map(toKebab);
  const ends = parts.map((_, at) => parts.slice(at));
  return ends.flatMap((end) => [end, end.map(toSingular)]).flatMap((end) => [end.join("-"), `no-${end.join("-")}`]);
}

const toKebab = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const toSingular = (name: string): string => name.replace(/s$/, "").replace(/^tl$/, "tls");
const flags = rows.flatMap(({ path, flags: own }) => own.map(({ name }) => ({ path, name })));

test.each(flags)(
  "the flag --$name has the name of its setting $path, except for listed differences",
  ({ path, name }) => expect([name, flagsOf(path).includes(name)]).toEqual([name, !(name in flagDifferences)]),
);

test.each([
  { what: "proxy.yaml", differences: settingDifferences, names: rows.map(({ path }) => path) },
  { what: "flags", differences: flagDifferences, names: flags.map(({ name }) => name) },
])("every listed difference for $what names an existing setting", ({ differences, names }) => {
  expect(Object.keys(differences).filter((name) => !names.includes(name))).toEqual([]);
});
