import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code } from "@connectrpc/connect";
import { afterEach, describe, expect, test, vi } from "vitest";
import { readProxyConfiguration, proxyConfigurationSchema, settingTable } from "../../src/settings/index.ts";
import { settingRows } from "../../src/settings/setting-flags.ts";

afterEach(() => vi.unstubAllEnvs());
const read = (text: string, flags: Parameters<typeof readProxyConfiguration>[1] = {}) =>
  readProxyConfiguration({ name: "proxy.yaml", text }, flags);
const upstream = "upstreams:\n- addresses: [http://127.0.0.1:1]\n  descriptors: reflection\n";

function problemsOf(text: string, flags: Parameters<typeof readProxyConfiguration>[1] = {}): string {
  try {
    read(text, flags);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** Returns a `methodConfig` retry policy. @param values - the settings that matter; the others are valid */
function retryPolicy(values: { attempts?: number; multiplier?: number; codes?: string }): string {
  const { attempts = 2, multiplier = 2, codes = "[UNAVAILABLE]" } = values;
  return `{ maxAttempts: ${attempts}, initialBackoff: 0.1s, maxBackoff: 1s, backoffMultiplier: ${multiplier}, retryableStatusCodes: ${codes} }`;
}

const unknownKeys = (count: number): string => Array.from({ length: count }, (_, at) => `unknown${at}: 1\n`).join("");

describe("proxy.yaml", () => {
  test.each<[name: string, text: string, problem: string]>(
    // oxfmt-ignore
    [
      ["an unknown setting", `${upstream}lisen:\n  port: 1\n`,
        'proxy.yaml:4:1: lisen is not a setting; did you mean "listen"?'],
      ["an unknown setting of an upstream", `${upstream}  timeout_ms: 5\n`,
        'proxy.yaml:4:3: upstreams[0].timeout_ms is not a setting; did you mean "timeoutMs"?'],
      ["an unknown setting without a similar one", `${upstream}drain:\n  xyz: 1\n`,
        "proxy.yaml:5:3: drain.xyz is not a setting; accepted here: delayMs, timeoutMs"],
      ["a number out of range", `${upstream}listen:\n  port: 65536\n`,
        "proxy.yaml:5:9: listen.port must be between 0 and 65535, got 65536"],
      ["text instead of a number", `${upstream}listen: { port: "8080" }\n`,
        'proxy.yaml:4:17: listen.port must be between 0 and 65535, got "8080"'],
      ["a number instead of text", `${upstream}listen:\n  host: 5\n`,
        "proxy.yaml:5:9: listen.host must be text, got 5"],
      ["text instead of a boolean", `${upstream}docs: yes\n`, 'proxy.yaml:4:7: docs must be true or false, got "yes"'],
      ["an unknown value of accessLog", `${upstream}accessLog: some\n`,
        'proxy.yaml:4:12: accessLog must be one of off, errors, all, got "some"'],
      ["a mapping instead of a list", "upstreams: {}\n", "proxy.yaml:1:12: upstreams must be a list, got a mapping"],
      ["text instead of a mapping", `${upstream}cors: "*"\n`, 'proxy.yaml:4:7: cors must be a mapping, got "*"'],
      ["a key without a value", `${upstream}listen:\n`, "proxy.yaml:4:8: listen must be a mapping, got nothing"],
      ["a missing setting", "upstreams:\n- descriptors: reflection\n",
        "proxy.yaml:2:3: upstreams[0] requires addresses"],
      ["an empty file", "", "proxy.yaml:1:1: the configuration must be a mapping, got nothing"],
      ["invalid YAML", `${upstream}a: [`, expect.stringMatching(/^proxy\.yaml:4:\d+: Flow sequence/)],
      ["a duplicate key", `${upstream}docs: true\ndocs: false\n`,
        'proxy.yaml:5:1: mapping keys must be unique, got "docs" again'],
      ["a duration without its unit", `${upstream}methodConfig:\n- name: [{}]\n  timeout: "5"\n`,
        'proxy.yaml:6:12: methodConfig[0].timeout must be a duration between 0.001s and 86400s, got "5"'],
      ["an unknown status code",
        `${upstream}methodConfig:\n- name: [{}]\n  retryPolicy: { maxAttempts: 2, initialBackoff: 1s, maxBackoff: 1s, backoffMultiplier: 2, retryableStatusCodes: [NOPE] }\n`,
        expect.stringContaining("proxy.yaml:6:115: methodConfig[0].retryPolicy.retryableStatusCodes[0] must be one of CANCELLED, UNKNOWN, ")],
      ...[0, 17, 1.5].map((code): [string, string, string] => [`the status code ${code}`,
        `${upstream}methodConfig:\n- name: [{}]\n  retryPolicy: ${retryPolicy({ codes: `[14, ${code}]` })}\n`,
        expect.stringContaining(`retryableStatusCodes[1] must be between 1 and 16, got ${code}`)]),
      ["a backoff multiplier of 0",
        `${upstream}methodConfig:\n- name: [{}]\n  retryPolicy: ${retryPolicy({ multiplier: 0 })}\n`,
        expect.stringContaining("backoffMultiplier must be a number above 0 and at most 1000, got 0")],
      ["a single attempt", `${upstream}methodConfig:\n- name: [{}]\n  retryPolicy: ${retryPolicy({ attempts: 1 })}\n`,
        expect.stringContaining("maxAttempts must be between 2 and 4294967295, got 1")],
      ["a header field that cannot be set", `${upstream}  requestHeader:\n    set: { a: b, Host: x }\n`,
        'proxy.yaml:5:18: upstreams[0].requestHeader.set.Host must be a field that can be set, got "Host"'],
      ["an invalid header field name in set", `${upstream}  responseHeader:\n    set: { "a b": x }\n`,
        'proxy.yaml:5:12: upstreams[0].responseHeader.set.a b must be a field that can be set, got "a b"'],
      ["a gRPC header field in reflectionHeader", `${upstream}  reflectionHeader: { grpc-timeout: 1S }\n`,
        'proxy.yaml:4:23: upstreams[0].reflectionHeader.grpc-timeout must be a field that can be set, got "grpc-timeout"'],
      ["a rename to a header field that cannot be set", `${upstream}  requestHeader: { rename: { x-a: Connection } }\n`,
        'proxy.yaml:4:35: upstreams[0].requestHeader.rename.x-a must be a field that can be set, got "Connection"'],
      ["a realm with non-ASCII characters", `${upstream}authentication: { realm: "Läden" }\n`,
        'proxy.yaml:4:26: authentication.realm must be printable ASCII, got "Läden"'],
      ["a public URL with a query", `${upstream}authentication: { publicUrl: "https://api.example/?a=1" }\n`,
        'proxy.yaml:4:30: authentication.publicUrl must be an http or https URL without a query, fragment or credentials, such as https://api.example, got "https://api.example/?a=1"'],
      ["a public URL with a password", `${upstream}authentication: { publicUrl: "https://a:b@api.example" }\n`,
        expect.stringContaining('such as https://api.example, got "https://…@api.example"')],
      ["a public URL without a scheme", `${upstream}authentication: { publicUrl: api.example }\n`,
        expect.stringContaining('such as https://api.example, got "api.example"')],
      ["a scope list with two spaces in a row", `${upstream}authentication: { scopes: { shop.v1.*: "a  b" } }\n`,
        'proxy.yaml:4:40: authentication.scopes.shop.v1.* must be scopes of printable ASCII without quotes and backslashes, separated by a space, got "a  b"'],
      ["a scope for an RPC path instead of an RPC name",
        `${upstream}authentication: { scopes: { /shop.v1.Shop/Get: a } }\n`,
        "proxy.yaml:4:29: authentication.scopes./shop.v1.Shop/Get is not the name of an RPC; names are similar to shop.v1.OrderService.GetOrder or shop.v1.*"],
      ["the flag name reflection in an upstream", "upstreams:\n- addresses: [dns:a:1]\n  reflection: true\n",
        'proxy.yaml:3:3: upstreams[0].reflection is not a setting; did you mean "descriptors: reflection"?'],
      ["the flag name reflection at the top level", `${upstream}reflection: true\n`,
        'proxy.yaml:4:1: reflection is not a setting; did you mean "upstreams[].descriptors: reflection"?'],
      ["the flag name port at the top level", `${upstream}port: 8080\n`,
        'proxy.yaml:4:1: port is not a setting; did you mean "listen.port"?'],
      ["an open RPC path without the leading slash",
        `${upstream}authentication: { open: [shop.v1.Stock, shop.v1.Shop/Get] }\n`,
        'proxy.yaml:4:41: authentication.open[1] must name services (package.Service) and RPCs (/package.Service/Method), got "shop.v1.Shop/Get", did you mean "/shop.v1.Shop/Get"?'],
      ["an origin with a path", `${upstream}cors: { origins: [https://a.example, https://b.example/] }\n`,
        'proxy.yaml:4:38: cors.origins[1] must be * or an origin such as https://shop.example, got "https://b.example/"'],
      ["an origin without a scheme", `${upstream}cors: { origins: [a.example] }\n`,
        'proxy.yaml:4:19: cors.origins[0] must be * or an origin such as https://shop.example, got "a.example"'],
      ["an invalid header field name in allowedHeaders", `${upstream}cors: { origins: ["*"], allowedHeaders: [a b] }\n`,
        'proxy.yaml:4:42: cors.allowedHeaders[0] must be the name of a header field, got "a b"'],
    ],
  )("%s is refused with line and column", (_name, text, problem) => expect(problemsOf(text)).toEqual(problem));

  test("errors in the file and in flags are reported together", () =>
    expect(problemsOf(`${upstream}docs: 1\ncors: {}\n`, { port: "x" }).split("\n")).toEqual([
      '--port must be between 0 and 65535, got "x"',
      "proxy.yaml:5:7: cors requires origins",
      "proxy.yaml:4:7: docs must be true or false, got 1",
    ]));

  test("at most 100 errors are listed", () => {
    const listed = problemsOf(upstream + unknownKeys(100)).split("\n");
    expect(listed).toHaveLength(100);
    expect(listed.at(-1)).toContain("proxy.yaml:103:1: unknown99 is not a setting; accepted here: ");
    const all = problemsOf(upstream + unknownKeys(101)).split("\n");
    expect(all).toEqual([...listed, "the rest of the settings is not checked"]);
  });

  test("problemAt returns the position of a setting", () => {
    const { problemAt } = read(`${upstream}listen:\n  tls: { cert: a }\n`, { host: "::" });
    const paths = ["listen.tls.cert", "listen.tls.key", "listen.host", "upstreams[0].addresses[0]"];
    expect(paths.map((path) => problemAt(path, "is wrong").message)).toEqual([
      "proxy.yaml:5:16: listen.tls.cert is wrong",
      "proxy.yaml:5:8: listen.tls.key is wrong",
      "--host is wrong",
      "proxy.yaml:2:15: upstreams[0].addresses[0] is wrong",
    ]);
  });
});

describe("secrets", () => {
  const withToken = (source: string): string => `${upstream}authentication:\n  tokens: [${source}]\n`;

  test("are read from environment variables, and from files without the final line break", () => {
    vi.stubEnv("PROXY_TEST_TOKEN", "from the environment");
    const file = join(mkdtempSync(join(tmpdir(), "secret-")), "token");
    writeFileSync(file, "from a file\n");
    const { settings } = read(withToken(`{ file: ${file} }, { env: PROXY_TEST_TOKEN }`));
    expect(settings.authentication?.tokens).toEqual(["from a file", "from the environment"]);
  });

  test.each([
    ["hunter2-hunter2-hunter2", "must be { file: PATH } or { env: NAME }"],
    ["{ env: PROXY_TEST_NONE }", "requires the environment variable PROXY_TEST_NONE, which is not set"],
    ["{ file: /none }", "requires a readable file: ENOENT: no such file or directory, open '/none'"],
    ["{ file: a, env: b }", "must be { file: PATH } or { env: NAME }"],
  ])("are not printed in the error for the source `%s`", (source, problem) => {
    expect(problemsOf(withToken(source))).toBe(`proxy.yaml:5:12: authentication.tokens[0] ${problem}`);
  });
});

describe("a secret in an invalid setting", () => {
  test.each([
    ["authentication: s3cret", "4:17: authentication must be a mapping, got text"],
    ["authentication: { tokens: s3cret }", "4:27: authentication.tokens must be a list, got text"],
    ["authentication: { tokens: [5] }", "4:28: authentication.tokens[0] must be { file: PATH } or { env: NAME }"],
    ["  reflectionHeader: s3cret", "4:21: upstreams[0].reflectionHeader must be a mapping, got text"],
    ["  requestHeader: { set: 12345 }", "4:25: upstreams[0].requestHeader.set must be a mapping, got a number"],
    [
      '  requestHeader: { set: { x-a: "s3cret\\n" } }',
      "4:32: upstreams[0].requestHeader.set.x-a has a value with a character that HTTP does not allow",
    ],
    [
      "  reflectionHeader: { x-a: { env: PROXY_TEST_TOKEN } }",
      "4:28: upstreams[0].reflectionHeader.x-a has a value with a character that HTTP does not allow",
    ],
  ])("is not printed in the error for `%s`", (text, problem) => {
    vi.stubEnv("PROXY_TEST_TOKEN", "s3cret\u2026");
    expect(problemsOf(`${upstream}${text}\n`)).toBe(`proxy.yaml:${problem}`);
  });
});

describe("flags", () => {
  test("override the file's settings, and upstream flags apply to every upstream", () => {
    const text = `${upstream}- addresses: [http://127.0.0.1:2]\n  timeoutMs: 1\nlisten: { port: 1, host: "::" }\n`;
    const { settings } = read(text, { port: "2", "timeout-ms": "7", "no-docs": true, rest: ["lenient,int64Numbers"] });
    expect(settings.listen).toMatchObject({ host: "::", port: 2 });
    expect(settings.upstreams.map(({ timeoutMs }) => timeoutMs)).toEqual([7, 7]);
    expect([settings.docs, settings.rest.options]).toEqual([false, ["lenient", "int64Numbers"]]);
  });

  test("--tls-cert and --upstream-tls-ca apply if the file has no tls mapping", () => {
    const { settings } = read(upstream, { "tls-cert": "cert.pem", "upstream-tls-ca": "ca.pem" });
    expect([settings.listen.tls?.cert, settings.upstreams[0]?.tls?.ca]).toEqual(["cert.pem", "ca.pem"]);
  });

  test.each([
    { name: "first", address: "http://127.0.0.1:2" },
    { name: "second", address: "http://127.0.0.1:3" },
  ])("--service with an upstream's $name address limits only that upstream", ({ address }) => {
    const addresses = "[http://127.0.0.1:2, http://127.0.0.1:3]";
    const text = `${upstream}  services: [a.*]\n- addresses: ${addresses}\n  services: [b.*]\n`;
    const { settings } = read(text, { service: [`${address}=c.*`, `${address}=d.*`] });
    expect(settings.upstreams.map(({ services }) => services)).toEqual([["a.*"], ["c.*", "d.*"]]);
  });

  test.each([
    { flag: "rules", path: "rest.rules" },
    { flag: "omit", path: "rest.omit" },
    { flag: "mcp", path: "mcp.tools" },
    { flag: "visibility", path: "visibility.allow" },
  ])("each value of a repeated --$flag is added to $path in order", ({ flag, path }) => {
    expect(read(upstream, { [flag]: ["a", "b"] }).settings).toHaveProperty(path, ["a", "b"]);
  });

  test.each<[flag: string, value: string | string[], path: string, want: unknown]>([
    ["timeout-max-ms", "9000", "upstreams[0].timeoutMaxMs", 9_000],
    ["service", ["a.*"], "upstreams[0].services", ["a.*"]],
    ["upstream-tls-servername", "a", "upstreams[0].tls.servername", "a"],
    ["upstream-tls-cert", "a.pem", "upstreams[0].tls.cert", "a.pem"],
    ["upstream-tls-key", "a.pem", "upstreams[0].tls.key", "a.pem"],
    ["tls-key", "a.pem", "listen.tls.key", "a.pem"],
    ["header-bytes", "5000", "headerBytes", 5_000],
    ["request-bytes", "2000", "requestBytes", 2_000],
    ["cors", ["https://a.example"], "cors.origins", ["https://a.example"]],
  ])("--%s with %j sets %s to %j", (flag, value, path, want) => {
    expect(read(upstream, { [flag]: value }).settings).toHaveProperty(path, want);
  });

  test("can define upstreams without a configuration file", () => {
    const flags = { upstream: ["http://a", "http://b"], "reflect-header": ["X-A: 1", "x-a: 2"] };
    const { settings } = readProxyConfiguration(undefined, { ...flags, reflection: true });
    expect(settings.upstreams).toMatchObject([
      { addresses: ["http://a"], descriptors: "reflection", reflectionHeader: { "x-a": "1, 2" } },
      { addresses: ["http://b"], descriptors: "reflection" },
    ]);
  });
});

test("methodConfig is read as gRPC's service config, with durations in milliseconds", () => {
  const policy = retryPolicy({ attempts: 3, codes: "[UNAVAILABLE, cancelled, 8, Aborted]" });
  const text = `${upstream}methodConfig:\n- name: [{ service: a.B, method: C }, {}]\n  timeout: 1.5s\n  retryPolicy: ${policy}\n`;
  // oxfmt-ignore
  expect(read(text).settings.methodConfig).toEqual([
    { name: [{ service: "a.B", method: "C" }, { service: "", method: "" }], timeout: 1_500,
      retryPolicy: { maxAttempts: 3, initialBackoff: 100, maxBackoff: 1_000, backoffMultiplier: 2,
      retryableStatusCodes: [Code.Unavailable, Code.Canceled, Code.ResourceExhausted, Code.Aborted] } },
  ]);
});

test.each([
  { attempts: 5, multiplier: 0.5 },
  { attempts: 6, multiplier: 1 },
  { attempts: 4_294_967_295, multiplier: 1_000 },
])("maxAttempts $attempts is limited to 5 (backoffMultiplier $multiplier)", (values) => {
  const text = `${upstream}methodConfig:\n- name: [{}]\n  retryPolicy: ${retryPolicy(values)}\n`;
  const [item] = read(text).settings.methodConfig;
  expect(item?.retryPolicy).toMatchObject({ maxAttempts: 5, backoffMultiplier: values.multiplier });
});

test("the reference page's example is valid if its secret is replaced", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/reference/proxy-configuration.md"), "utf8");
  const [, example = ""] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  expect(problemsOf(example.replace("{ file: /run/secrets/reflection }", "secret"))).toBe("");
});

test.each([
  { timeout: "0.001s", ms: 1 },
  { timeout: "1.123456789s", ms: 1_123 },
  { timeout: "86400s", ms: 86_400_000 },
  { timeout: "0.000999s", ms: undefined },
  { timeout: "86400.001s", ms: undefined },
  { timeout: "1.s", ms: undefined },
])("the duration $timeout is read as $ms ms", ({ timeout, ms }) => {
  const text = `${upstream}methodConfig: [{ name: [{}], timeout: ${timeout} }]`;
  if (ms === undefined) expect(() => read(text)).toThrow("must be a duration between 0.001s and 86400s");
  else expect(read(text).settings.methodConfig[0]?.timeout).toBe(ms);
});

test("problemAt does not name the upstream's flag for a missing setting", () => {
  const flags = { upstream: ["unix:/a=b"], reflection: true, service: ["unix:/a=b=c.*"] };
  const { settings, problemAt } = readProxyConfiguration(undefined, flags);
  expect(settings.upstreams[0]?.services).toEqual(["c.*"]);
  expect(["timeoutMs", "services"].map((name) => problemAt(`upstreams[0].${name}`, "is wrong").message)).toEqual([
    "upstreams[0].timeoutMs is wrong",
    "--service is wrong",
  ]);
});

test("--reflect-header requires a colon", () =>
  expect(() => read(upstream, { "reflect-header": ["secret"] })).toThrow("must be a name, a colon and a value"));

test("every setting has a description, which the schema contains", () => {
  const rows = settingRows();
  expect(rows.length).toBeGreaterThan(80);
  expect(rows.filter(({ about }) => !/^[A-Z`].*\.$/.test(about)).map(({ path }) => path)).toEqual([]);
  const table = settingTable().join("\n");
  const values = rows.filter(({ type }) => type !== "mapping");
  expect(values.filter(({ path }) => !table.includes(`\`${path}\``))).toEqual([]);
  const schema = JSON.stringify(proxyConfigurationSchema());
  expect(rows.filter(({ about }) => !schema.includes(JSON.stringify(about)))).toEqual([]);
  expect(proxyConfigurationSchema()).toMatchObject({ required: ["upstreams"], additionalProperties: false });
});

test("the schema contains the bounds of numbers", () =>
  expect(proxyConfigurationSchema()).toMatchObject({
    properties: {
      listen: { properties: { port: { type: "integer", minimum: 0, maximum: 65_535 } } },
      rateLimit: { properties: { perAddress: { type: "number", minimum: 0.001, maximum: 1_000_000 } } },
    },
  }));
