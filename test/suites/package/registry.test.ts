import { rmSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { projectFolder } from "@protoport/testing/process";
import { protoportPackages } from "../../../protoport/tools/build/manifest.ts";
import { type Publication, publicationsOf } from "../../../protoport/tools/build/publications.ts";
import { packageNames } from "../../../tools/release/texts.ts";
import manifest from "../../../protoport/gateway/package.json" with { type: "json" };
// oxfmt-ignore
import { type LocalRegistry, publishPackages, startRegistry
} from "../../../protoport/test/support/package/local-registry.ts";
import { createUserProject } from "../../../protoport/test/support/package/user-project.ts";

// Publishes the packages to a registry and installs them from it by their names, like after a release.

const user = createUserProject();
let registry: LocalRegistry;
const npm = (command: string, folder: string = user.path): Promise<string> => registry.run(command, folder);
/** Runs a package's command, without packages that npx has installed in earlier runs. */
const npx = (words: string): Promise<string> => npm(`npm_config_cache=cache npx --yes ${words}`);
beforeAll(async () => void (registry = await startRegistry(/protoport|plantstore/)));
afterAll(() => {
  registry[Symbol.dispose]();
  rmSync(user.path, { recursive: true });
});

/** Queries the registry for a package before it is published. */
const find = ({ find: words }: Publication): Promise<string> => npm(words.join(" "), projectFolder);

test.each([...protoportPackages, "plantstore"])("npm publish --dry-run accepts dist/%s", async (name) => {
  const printed = await npm(`npm publish --dry-run --access public ./dist/${name}`, projectFolder);
  expect(printed).toContain(`@${manifest.version}\n`);
  expect(printed).not.toContain("npm warn publish");
  expect(registry.names()).toEqual([]);
});

test("npm publishes the packages with the release commands, without warnings", async () => {
  const publications = publicationsOf(packageNames(), manifest.version, projectFolder);
  for (const publication of publications) await expect(find(publication)).rejects.toThrow("E404");
  for (const { id, printed } of await publishPackages(registry, [...protoportPackages, "plantstore"])) {
    expect(printed, id).toContain(`@${manifest.version}\n`);
    expect(printed, id).not.toContain("npm warn publish");
  }
  for (const publication of publications) expect(await find(publication)).toBe(`${manifest.version}\n`);
  expect(registry.names()).toEqual(packageNames());
});

test("npm install --global installs the plant store and its man page", async () => {
  await npm("npm install --global --prefix opt plantstore --no-audit --no-fund");
  expect(await npm("opt/bin/plantstore openapi")).toContain('"/plants/{id}"');
  expect(await npm("cat opt/share/man/man1/plantstore.1")).toContain(".TH PLANTSTORE 1");
});

test("npx runs the proxy by the package's name", async () =>
  expect(await npx("@protoport/proxy --help")).toMatch(/^protoport: /));

test("npx runs the transcoding suite by the package's name", async () =>
  expect(await npx("@protoport/conformance --list")).toContain("query.none (must)"));
