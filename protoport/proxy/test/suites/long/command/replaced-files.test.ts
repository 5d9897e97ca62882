import { hash } from "node:crypto";
import { renameSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, test } from "vitest";
import { descriptorSetOf, GreenhouseService, OrderService, startProxyProcess } from "@protoport/testing/proxy";
import { createSigningKey, createTempFolder } from "@protoport/testing/process";

// Which files a proxy watches after reloads have replaced them in its configuration.

const folder = createTempFolder();
afterAll(() => folder[Symbol.dispose]());

/** Milliseconds in which a watched file is checked at least twice, so that a change is logged. */
const twoChecksMs = 800;

const greenhouse = descriptorSetOf(GreenhouseService.file);
const withOrders = descriptorSetOf(GreenhouseService.file, OrderService.file);
const set = folder.write("unchanged.binpb", greenhouse);
const unknownRule = folder.write(
  "rules.yaml",
  `rules:\n- { selector: ${GreenhouseService.typeName}.WaterBd, get: /x }\n`,
);
const keys = await Promise.all([1, 2].map((id) => createSigningKey("ES256", String(id))));

interface WatchedFile {
  readonly name: string;
  /** Returns the settings that name the file. */
  readonly settings: (path: string) => string;
  /** Returns a content that differs from the previous one. */
  readonly content: (version: number) => string | Uint8Array;
  /** What is logged when a change is applied. */
  readonly logged: RegExp;
}

const upstreamOf = (path: string): string => `upstreams: [{ addresses: ["http://127.0.0.1:1"], descriptors: ${path} }]`;

const count = (text: string, pattern: RegExp): number => [...text.matchAll(pattern)].length;

test.concurrent.for<WatchedFile>(
  // oxfmt-ignore
  [
    { name: "descriptors", settings: upstreamOf, content: (version) => (version % 2 === 0 ? greenhouse : withOrders),
      logged: /^descriptors reloaded$/gm },
    { name: "token hashes", settings: (path) => `${upstreamOf(set)}\nauthentication: { tokenHashesFile: ${path} }`,
      content: (version) => `sha256:${hash("sha256", `token-of-version-${version}`)} shop - -\n`,
      logged: /^file of token hashes reloaded /gm },
    { name: "signing keys",
      settings: (path) => `${upstreamOf(set)}\nauthentication: { jwt: [{ issuer: "https://id.example", audiences: [a], keysFile: ${path} }] }`,
      content: (version) => JSON.stringify({ keys: keys.slice(version % 2).map(({ jwk }) => jwk) }),
      logged: /^key set reloaded /gm },
  ],
)("after two reloads, only the current file with $name is watched", async (row, { expect }) => {
  const { name, settings, content, logged } = row;
  const versions = new Map<string, number>();
  const fileOf = (id: string): string => `${name.replaceAll(" ", "-")}-${id}`;
  const change = (id: string): void => {
    const version = (versions.get(id) ?? 0) + 1;
    versions.set(id, version);
    folder.write(`${fileOf(id)}.next`, content(version));
    renameSync(folder.file(`${fileOf(id)}.next`), folder.file(fileOf(id)));
  };
  const config = fileOf("proxy.yaml");
  const configure = (id: string, others = ""): void => {
    const common = "listen: { port: 0 }\nadmin: { port: 0 }\n";
    folder.write(config, `${common}${settings(folder.file(fileOf(id)))}\n${others}`);
  };
  for (const id of ["0", "1", "2", "refused"]) change(id);
  configure("0");
  await using proxy = await startProxyProcess(["--config", folder.file(config)]);
  const { command } = proxy;
  const refused = /^cannot reload the configuration: .*did you mean/gm;
  let [refusals, reloads, changes] = [0, 0, 0];
  const reload = async (): Promise<void> => {
    command.process.kill("SIGHUP");
    reloads++;
    await expect.poll(() => count(command.stdout(), /^configuration reloaded$/gm), { timeout: 5_000 }).toBe(reloads);
  };
  const replaced = ["refused"];
  for (const current of ["0", "1", "2"]) {
    configure("refused", `rest: { rules: [${unknownRule}] }\n`);
    command.process.kill("SIGHUP");
    refusals++;
    await expect.poll(() => count(command.stderr(), refused), { timeout: 5_000 }).toBe(refusals);
    configure(current);
    await reload();
    // Files that are not in use: neither a check nor SIGHUP reads them.
    for (const id of replaced) change(id);
    await pause(twoChecksMs);
    await reload();
    expect(count(command.stdout(), logged)).toBe(changes);
    change(current);
    changes++;
    await expect.poll(() => count(command.stdout(), logged), { timeout: 5_000 }).toBe(changes);
    replaced.push(current);
  }
  expect(count(command.stderr(), /^cannot reload the descriptors/gm)).toBe(0);
});
