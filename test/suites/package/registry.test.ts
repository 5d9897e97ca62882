import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { publicationsOf } from "../../../tools/release/artifacts.ts";
import { packageFolders } from "../../../tools/build/manifest.ts";
import manifest from "../../../packages/gateway/package.json" with { type: "json" };
import { listenOnLoopback } from "../../../packages/testing/src/carriers/listen-on-loopback.ts";
import { createUserProject } from "../../support/package/user-project.ts";
import { buildStep } from "../../../packages/testing/src/process/build-step.ts";
import { projectFolder } from "../../../packages/testing/src/process/child-program.ts";

// The packages published to a registry and installed from it by their names, as once there is a release. Only the proof
// of origin is left out, for which npm wants a CI that it knows.

/** What npm sends to publish, by the name of the package, and what of it are files, by their paths. */
const packages = new Map<string, unknown>();
const files = new Map<string, Buffer>();
/** Where all other packages are. */
const upstream = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();

const registry = createServer((request, response) => {
  const path = decodeURIComponent(request.url ?? "").slice(1);
  const found = packages.get(path);
  const file = files.get(path);
  if (request.method === "PUT") void receive(request).then(() => response.writeHead(201).end("{}"));
  else if (file !== undefined) response.end(file);
  else if (found !== undefined) response.end(JSON.stringify(found));
  else if (path.includes("plantstore")) response.writeHead(404).end("{}");
  else response.writeHead(307, { location: new URL(request.url ?? "", upstream).href }).end();
});

async function receive(request: IncomingMessage): Promise<void> {
  const published = JSON.parse(await text(request));
  const attached: Readonly<Record<string, { readonly data: string }>> = published["_attachments"];
  packages.set(published.name, published);
  for (const [name, { data }] of Object.entries(attached))
    files.set(`${published.name}/-/${name}`, Buffer.from(data, "base64"));
}

const user = createUserProject();
// `npm run --silent` would silence the npm that is tried, too.
const environment = { npm_config_userconfig: join(user.path, ".npmrc"), npm_config_loglevel: "notice" };
const npm = (command: string, folder: string = user.path): Promise<string> =>
  buildStep("sh", ["-c", command], { folder, environment });

beforeAll(async () => {
  const url = await listenOnLoopback(registry);
  // npm publishes nothing without a credential.
  user.write(".npmrc", `registry=${url}/\n${url.replace("http:", "")}/:_authToken=any\ncache=${user.path}/cache\n`);
});
afterAll(() => {
  registry.close();
  rmSync(user.path, { recursive: true });
});

const folders = [...packageFolders.keys()].map((name) => `./dist/${name}`).join(" ");

test("npm publishes the packages by the commands of a release, and mends nothing in them", async () => {
  await npm(`npm pack --silent --pack-destination ${user.path} ${folders}`, projectFolder);
  for (const { find, publish } of publicationsOf(manifest.version, user.path)) {
    await expect(npm(find.join(" "), projectFolder)).rejects.toThrow("E404");
    const printed = await npm(publish.join(" ").replace(" --provenance", ""), projectFolder);
    expect(await npm(find.join(" "), projectFolder)).toBe(`${manifest.version}\n`);
    expect(printed).toContain(`@${manifest.version}\n`);
    expect(printed).not.toContain("npm warn publish");
  }
  const names = [...packageFolders.keys()].map((name) => (name === "plantstore" ? name : `@plantstore/${name}`));
  expect([...packages.keys()]).toEqual(names);
});

test("a project installs the gateway by its name", async () => {
  await npm("npm install @plantstore/gateway --no-audit --no-fund");
  expect(await npm(`node -p 'typeof require("@plantstore/gateway").createGateway'`)).toBe("function\n");
});

test.each([
  { name: "@plantstore/http-engine", exported: "createHttpEngine" },
  { name: "@plantstore/docs-page", exported: "createDocsPage" },
  { name: "@plantstore/rest-client", exported: "createRestTransport" },
  { name: "@plantstore/auth", exported: "createBearerAuth" },
  { name: "@plantstore/telemetry/metrics", exported: "Metrics" },
  { name: "@plantstore/proxy", exported: "createProxy" },
])("a project installs what $name needs with it", async ({ name, exported }) => {
  await npm(`npm install ${name.replace("/metrics", "")} --no-audit --no-fund`);
  expect(await npm(`node -p 'typeof require("${name}").${exported}'`)).toBe("function\n");
});

test("npx runs the proxy by its name", async () => {
  expect(await npm("npx --yes @plantstore/proxy --help")).toMatch(/^Usage: npx @plantstore\/proxy --upstream /);
});

test("npm install --global gets the whole plant store by its name, and its man page", async () => {
  await npm("npm install --global --prefix opt plantstore --no-audit --no-fund");
  expect(await npm("opt/bin/plantstore openapi")).toContain('"/plants/{id}"');
  expect(await npm("cat opt/share/man/man1/plantstore.1")).toContain(".TH PLANTSTORE 1");
});

test("npx runs the transcoding suite by its name", async () => {
  expect(await npm("npx --yes @plantstore/conformance --list")).toContain("query.none (must)");
});
