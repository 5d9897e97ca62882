import { afterAll, expect, test } from "vitest";
import { descriptorSetOf, GreenhouseService, ProxyCommand } from "@protoport/testing/proxy";
import { ConfigurationFile } from "../../src/command/configuration-file.ts";
import { type ProxySettings, toProxySettings } from "../../src/command/proxy-settings.ts";
import { readProxyConfiguration } from "../../src/settings/index.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

// A configuration file that is read while it is written may lack entries.

const greenhouse = GreenhouseService.typeName;

const files = createTempFolder();
afterAll(() => files[Symbol.dispose]());
const descriptorFile = files.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));

const introspection = { url: "https://id.example/introspect", clientId: "proxy", clientSecretFile: "secret" };

function issuer(name: string, type?: string): object {
  return { issuer: `https://${name}.example`, audiences: ["shop"], ...(type !== undefined && { type }) };
}

function upstream(port: number, services: readonly string[], requestHeader?: object): object {
  return { addresses: [`http://127.0.0.1:${port}`], descriptors: descriptorFile, services, requestHeader };
}

const notForwarded = { authentication: { jwt: [issuer("a")], forward: false } };

test("a reload that loses a scope entry or validation is refused", async () => {
  using folder = createTempFolder();
  const descriptors = folder.write("greenhouse.binpb", descriptorSetOf(GreenhouseService.file));
  const tokens = [{ file: folder.write("token", "a-token-of-a-shop-2026") }];
  const configure = (scopes: object, more: { open?: readonly string[]; validate?: boolean } = {}): string => {
    const { open = [], validate = true } = more;
    const upstreams = [{ addresses: ["http://127.0.0.1:1"], descriptors }];
    const settings = { listen: { port: 0 }, drain: { delayMs: 0, timeoutMs: 0 }, upstreams, validate };
    return folder.write("proxy.json", JSON.stringify({ ...settings, authentication: { tokens, scopes, open } }));
  };
  const all = { [`${greenhouse}.*`]: "read" };
  const entry = { [`${greenhouse}.GetReading`]: "admin" };
  await using command = new ProxyCommand(["--config", configure({ ...all, ...entry, "other.v1.*": "a" })]);
  await command.serving;
  const reload = async (): Promise<string | undefined> => {
    const from = command.lines.length;
    command.hangUp();
    return (await command.waitForLine(/^(?:cannot reload the configuration|configuration reloaded)/, from))?.input;
  };
  configure(all);
  const want = `authentication.scopes must keep ${greenhouse}.GetReading; restart to require fewer scopes`;
  expect(await reload()).toContain(want);
  configure({ ...all, ...entry }, { validate: false });
  expect(await reload()).toContain("validate is missing; restart to serve without validate");
  // Entries may be changed, merged or replaced by open RPCs. Other entries match no served RPC.
  for (const [scopes, open] of [
    [{ ...all, ...entry }, []],
    [{ [`${greenhouse}.*`]: "admin read" }, []],
    [{ [`${greenhouse}.*`]: "write" }, []],
    [{ "shop.v1.*": "a" }, [greenhouse]],
  ] as const) {
    configure(scopes, { open });
    expect(await reload()).toBe("configuration reloaded");
  }
});

test.each<[name: string, lost: string, before: object, after: object, problem: string]>(
  // oxfmt-ignore
  [
    ["the type of one of two issuers' tokens", "authentication.jwt[].type",
      { authentication: { jwt: [issuer("a", "at+jwt"), issuer("b", "at+jwt")] } },
      { authentication: { jwt: [issuer("a", "at+jwt"), issuer("b")] } },
      "is missing for https://b.example; restart to serve without authentication.jwt[].type"],
    ["the audiences of introspected tokens", "authentication.introspection.audiences",
      { authentication: { introspection: { ...introspection, audiences: ["shop"] } } },
      { authentication: { introspection } },
      "is missing for https://id.example/introspect; restart to serve without authentication.introspection.audiences"],
    ["the services of one of two upstreams", "upstreams[].services",
      { upstreams: [upstream(1, ["a.*"]), upstream(2, ["b.*"])] },
      { upstreams: [upstream(1, ["a.*"]), upstream(2, [])] },
      "is missing for http://127.0.0.1:2; restart to serve without upstreams[].services"],
    ["the withholding of credentials", "authentication.forward",
      notForwarded, { authentication: { jwt: [issuer("a")] } },
      "is missing; restart to serve without authentication.forward"],
    ["the forwarded names of one of two upstreams", "upstreams[].requestHeader.allow",
      { upstreams: [upstream(1, ["a.*"], { allow: [] }), upstream(2, ["b.*"], { allow: ["x-a"] })] },
      { upstreams: [upstream(1, ["a.*"], { allow: ["x-b"] }), upstream(2, ["b.*"], { deny: ["x-b"] })] },
      "is missing for http://127.0.0.1:2; restart to serve without upstreams[].requestHeader.allow"],
    ["the denied names of an upstream that gets no credentials", "upstreams[].requestHeader.deny",
      { ...notForwarded, upstreams: [upstream(1, [], { deny: ["x-a"] })] }, notForwarded,
      "is missing for http://127.0.0.1:1; restart to serve without upstreams[].requestHeader.deny"],
  ],
)("a reload that loses %s is refused", async (_name, lost, before, after, problem) => {
  const read = async (settings: object): Promise<ProxySettings> => {
    const text = JSON.stringify({ upstreams: [upstream(1, [])], ...settings });
    return await toProxySettings(readProxyConfiguration({ name: "proxy.json", text }));
  };
  const used: ProxySettings[] = [];
  let next: object = after;
  const file = new ConfigurationFile("proxy.json", () => read(next));
  const current = await read(before);
  const reload = (): Promise<void> =>
    file.reload(
      () => current,
      async (settings) => void used.push(settings),
    );
  await reload();
  expect([file.problem, used]).toEqual([expect.stringContaining(`${lost} ${problem}`), []]);
  next = before;
  await reload();
  expect([file.problem, used.length]).toEqual([undefined, 1]);
});
