import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DescMessage, fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway, type Gateway } from "../../../gateway/src/index.ts";
import { startProxy, type TestProxy } from "../../../testing/src/gateway/proxy.ts";
import { buildLimitMs, buildStep, createTempFolder, openPython } from "@protoport/testing/process";
import { type ClientCall, createCalls, nextPageToken } from "./client-calls.ts";
import { clientServices, configRules, readDefinition, suiteFolder } from "./definition.ts";
import { callHeader, type ErrorCode, errorCodeOf, errorDetails, errorMessage, FakeServices } from "./fake-services.ts";

// Google's published clients call services whose definitions these clients contain, as REST with the profile google.

const definition = await readDefinition();
const calls = createCalls(definition).map((call, at) => ({
  ...call,
  at,
  name: `${call.method.parent.typeName}.${call.method.name} of ${call.client.typeName} at ${call.path}${call.responses.length === 0 ? " without responses" : ""}`,
}));

interface Client {
  readonly language: string;
  /** Makes a file's calls, and writes the outcomes to another. */
  readonly run: (...files: readonly string[]) => Promise<unknown>;
  /** Whether a client offers the RPCs that several APIs share. */
  readonly offersShared: (client: string) => boolean;
  /** Returns the client's error, without ErrorInfo's fields. */
  readonly errorOf: (code: ErrorCode) => object;
}

const clients: readonly Client[] = [
  {
    language: "Node",
    run: (...files) => buildStep("node", [join(suiteFolder, "call.ts"), ...files]),
    // This client's methods for locations send the annotation's path instead of the path for Cloud Tasks.
    offersShared: (client) => client === "google.firestore.admin.v1.FirestoreAdmin",
    errorOf: ({ code }) => ({ code, message: errorMessage, details: Object.values(errorDetails) }),
  },
  {
    language: "Python",
    run: async (...files) => {
      const programs = await openPython(join(suiteFolder, "requirements.txt"));
      return await buildStep(join(programs, "python"), [join(suiteFolder, "call.py"), ...files]);
    },
    offersShared: () => true,
    errorOf: ({ httpStatus }) => ({
      code: httpStatus,
      // The client adds the HTTP method and the URL at the start.
      message: expect.stringMatching(new RegExp(`: ${errorMessage}$`)),
      details: Object.entries(errorDetails).map(([name, detail]) => ({
        "@type": `type.googleapis.com/${name}`,
        ...detail,
      })),
    }),
  },
];

type Outcome = { readonly results?: readonly JsonValue[]; readonly error?: JsonObject; readonly stack?: string };
const rest = { profile: "google" as const, rules: configRules };
const jsonOptions = { registry: definition };
const services = new FakeServices(definition, calls);
let gateway: Gateway;
let proxy: TestProxy;

beforeAll(async () => {
  gateway = createGateway({ rest, jsonOptions, routes: (router) => services.register(router) });
  const { port } = await gateway.listen({ host: "127.0.0.1", port: 0 });
  proxy = await startProxy(`http://127.0.0.1:${port}`, [...definition.files], { rest });
  ports = { "the gateway": port, "the proxy": proxy.address.port };
});

afterAll(async () => {
  await proxy?.[Symbol.asyncDispose]();
  await gateway?.close();
});

const servers = ["the gateway", "the proxy"] as const;
let ports: Readonly<Record<(typeof servers)[number], number>>;

describe.each(clients)("Google's REST client for $language", ({ language, run, offersShared, errorOf }) => {
  const offered = calls.filter(({ method: { parent }, client }) => parent === client || offersShared(client.typeName));
  const outcomes = new Map<string, Outcome>();
  const nameOf = (server: string, fails: boolean, at: number): string => `${language} ${server} ${fails} ${at}`;

  beforeAll(async () => {
    const made = servers.flatMap((server) =>
      [false, true].flatMap((fails) =>
        offered.map(({ client, method, kind, request, resultTypes, at }) => ({
          port: ports[server],
          client: client.typeName,
          method: method.name,
          input: method.input.typeName,
          kind,
          request,
          resultTypes: resultTypes.map(({ typeName }) => typeName),
          headers: { [callHeader.name]: nameOf(server, fails, at), ...(fails && { [callHeader.fails]: "1" }) },
        })),
      ),
    );
    using folder = createTempFolder();
    writeFileSync(folder.file("calls.json"), JSON.stringify(made));
    await run(folder.file("calls.json"), folder.file("outcomes.json"));
    const returned: readonly Outcome[] = JSON.parse(readFileSync(folder.file("outcomes.json"), "utf8"));
    for (const [at, { headers }] of made.entries()) outcomes.set(headers[callHeader.name] ?? "", returned[at] ?? {});
  }, buildLimitMs);

  describe.each(servers)("through %s", (server) => {
    test.each(offered)("sends the request for $name and returns its response", (call) => {
      const name = nameOf(server, false, call.at);
      const { results, ...other } = outcomes.get(name) ?? {};
      expect(other).toEqual({});
      expect(services.received.get(name)?.map((request) => toJson(call.method.input, request))).toEqual(
        requestsOf(call).map((request) => normalize(call.method.input, request)),
      );
      expect(normalizeResults(call, results)).toEqual(normalizeResults(call, call.results));
    });

    test.each(offered)("reports the code, message and details in $name's error", ({ at }) => {
      const { error } = outcomes.get(nameOf(server, true, at)) ?? {};
      expect(error).toEqual({ ...errorDetails["google.rpc.ErrorInfo"], ...errorOf(errorCodeOf(at)) });
    });
  });
});

test("the calls cover every RPC with an HTTP rule except client streams", () => {
  const called = new Set(calls.map(({ method }) => method));
  const uncalled = clientServices(definition).flatMap(({ service, mixin }) =>
    [...service.methods, ...mixin.methods].filter((method) => !called.has(method)),
  );
  const names = [...new Set(uncalled.map(({ name }) => name))].toSorted();
  expect(names).toEqual(["Listen", "UploadQueueYaml", "WaitOperation", "Write"]);
});

function requestsOf({ kind, request, responses }: ClientCall): readonly JsonObject[] {
  return kind === "pages" ? responses.map((_, at) => ({ ...request, pageToken: nextPageToken(at) })) : [request];
}

function normalizeResults({ resultTypes }: ClientCall, results: readonly JsonValue[] = []): readonly JsonValue[] {
  return results.map((result, at) => {
    const type = resultTypes[Math.min(at, resultTypes.length - 1)];
    return type === undefined ? result : normalize(type, result);
  });
}

/** Returns the form that protobuf-es writes, without fields that have default values. */
function normalize(type: DescMessage, json: JsonValue): JsonValue {
  return toJson(type, fromJson(type, json, { registry: definition }), { registry: definition });
}
