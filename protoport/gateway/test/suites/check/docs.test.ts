import { readFileSync } from "node:fs";
import { join } from "node:path";
import { validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { expect, test } from "vitest";
import { defaultLimits, defaultReadMaxBytes } from "../../../src/http/exchange/limits.ts";
import { isPeerAtLeast } from "@protoport/testing/process";
import { sourceFiles } from "../../../../testing/src/source-files.ts";

// The tables in protoport/docs/reference/gateway-options.md list every option, and no others.

const root = join(import.meta.dirname, "../../../../..");
const page = readFileSync(join(root, "protoport/docs/reference/gateway-options.md"), "utf8");
const connect = "node_modules/@connectrpc/connect/dist/esm";

/** Where options are declared, and the prefix of their names on the page. */
// oxfmt-ignore
const declared = [
  { file: "protoport/gateway/src/create-gateway.ts", type: "GatewayOptions", prefix: "" },
  { file: "protoport/gateway/src/serve/create-server.ts", type: "ServingOptions", prefix: "" },
  { file: "protoport/gateway/src/protocols/rest/rules/rest-options.ts", type: "RestOptions", prefix: "rest." },
  { file: "protoport/gateway/src/protobuf/messages/json/read-options.ts", type: "ReadJsonOptions",
    prefix: "rest.json." },
  { file: "protoport/gateway/src/serve/cors.ts", type: "CorsOptions", prefix: "cors." },
  { file: "protoport/gateway/src/engine/listener.ts", type: "ListenOptions", prefix: "" },
  { file: "protoport/gateway/src/engine/connection-ages.ts", type: "ConnectionAgeOptions", prefix: "" },
  { file: "protoport/gateway/src/engine/bind.ts", type: "BindOptions", prefix: "" },
  { file: "protoport/gateway/src/http/exchange/limits.ts", type: "Limits", prefix: "" },
  { file: `${connect}/router.d.ts`, type: "ConnectRouterOptions", prefix: "" },
  { file: `${connect}/protocol/universal-handler.d.ts`, type: "UniversalHandlerOptions", prefix: "" },
];

/** Options that only contain other options. */
const elsewhere = new Set(["rest", "rest.json"]);

function optionsOf(file: string, type: string): readonly string[] {
  const source = readFileSync(join(root, file), "utf8");
  const body = new RegExp(`interface ${type} [^{]*\\{(.*?)\\n\\}`, "s").exec(source)?.[1] ?? "";
  return [...body.matchAll(/^ {2,4}(?:readonly )?(\w+)\??[:(]/gm)].flatMap(([, name]) => name ?? []);
}

const options = declared.flatMap(({ file, type, prefix }) => {
  const names = optionsOf(file, type);
  if (names.length === 0) throw new Error(`${type} is not in ${file}`);
  return names.map((name) => `${prefix}${name}`).filter((name) => !elsewhere.has(name));
});

const serviceOptions = optionsOf("protoport/gateway/src/protocols/rest/rules/service-options.ts", "RestServiceOptions");

/** The table rows, with the names in the first cell, and the default. */
const rows = new Map(
  [...page.matchAll(/^\| (`.+?`) \| (.*?) \|/gm)].flatMap(([, names = "", fallback = ""]) =>
    [...names.matchAll(/`([\w.]+)`/g)].map(([, name = ""]) => [name, fallback] as const),
  ),
);

test.each(options)("the option %s has a row in gateway-options.md", (option) => expect(rows.has(option)).toBe(true));

test("protoport/docs/reference/rest-options.md lists exactly the options for a service", () => {
  const restPage = readFileSync(join(root, "protoport/docs/reference/rest-options.md"), "utf8");
  const [, table = ""] = restPage.split("\n## Options\n");
  const listed = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name = ""]) => name);
  expect(listed.toSorted()).toEqual(serviceOptions.toSorted());
});

test("gateway-options.md has no row for an unknown option", () => {
  const newer = isPeerAtLeast("@connectrpc/connect", "2.2") ? [] : ["requestGate"];
  expect([...rows.keys()].filter((name) => !options.includes(name))).toEqual(newer);
});

/** The gateway's tests, and the examples, which tests run. */
const tests = ["protoport/gateway/test", "protoport/examples"]
  .flatMap((folder) => sourceFiles(join(root, folder)).map((file) => readFileSync(join(root, folder, file), "utf8")))
  .join("\n");

// Without this, an option that no code reads would pass.
test.each([...options, ...serviceOptions])("the option %s is set by a test", (option) => {
  const name = option.slice(option.lastIndexOf(".") + 1);
  expect(tests).toMatch(new RegExp(`\\b${name}(?::|\\(|,| \\})`));
});

const units = { KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3, s: 1000, min: 60_000 } as const;

/** A documented default as a number, such as "16 KiB", "10,000", "none". */
function toNumber(fallback: string): number {
  if (fallback === "none") return 0;
  const [digits = "", unit] = fallback.replaceAll(",", "").split(" ");
  const factor = Object.entries(units).find(([name]) => name === unit)?.[1];
  return Number(digits) * (factor ?? 1);
}

test.each(Object.entries(defaultLimits))("the default of the limit %s is documented", (limit, value) => {
  expect(toNumber(rows.get(limit) ?? "missing")).toBe(value);
});

test("gateway-options.md documents the default of readMaxBytes", () =>
  expect(toNumber(rows.get("readMaxBytes") ?? "missing")).toBe(defaultReadMaxBytes));

// connect-node's defaults, which are also the gateway's.
const ofConnect = validateUniversalHandlerOptions({});

test.each(["writeMaxBytes", "compressMinBytes"] as const)("the default of the option %s is documented", (option) => {
  // The largest size is one byte less than 4 GiB.
  expect(Math.abs(toNumber(rows.get(option) ?? "missing") - ofConnect[option])).toBeLessThanOrEqual(1);
});
