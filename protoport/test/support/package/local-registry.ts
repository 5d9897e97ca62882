import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { buildStep, listenOnLoopback, projectFolder } from "@protoport/testing";
import { protoportPackages, readManifest } from "../../../tools/build/manifest.ts";
import { publicationsOf } from "../../../tools/build/publications.ts";
import { createUserProject } from "./user-project.ts";

/** A registry on this machine for publishing packages, which redirects npm to the real one for all others. */
export interface LocalRegistry extends Disposable {
  /** The published packages' names, in order. */
  readonly names: () => readonly string[];
  readonly run: (command: string, folder: string) => Promise<string>;
}

/** Starts a {@link LocalRegistry}. @param own - matches the names of packages that only this registry has */
export async function startRegistry(own: RegExp = /protoport/): Promise<LocalRegistry> {
  /** The published documents by package name, and their tarballs by path. */
  const packages = new Map<string, unknown>();
  const files = new Map<string, Buffer>();
  const upstream = execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();

  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1);
    const found = packages.get(path);
    const file = files.get(path);
    if (request.method === "PUT") void receive(request).then(() => response.writeHead(201).end("{}"));
    else if (file !== undefined) response.end(file);
    else if (found !== undefined) response.end(JSON.stringify(found));
    else if (own.test(path)) response.writeHead(404).end("{}");
    else response.writeHead(307, { location: new URL(request.url ?? "", upstream).href }).end();
  });

  async function receive(request: IncomingMessage): Promise<void> {
    const published = JSON.parse(await text(request));
    const attached: Readonly<Record<string, { readonly data: string }>> = published["_attachments"];
    packages.set(published.name, published);
    for (const [name, { data }] of Object.entries(attached))
      files.set(`${published.name}/-/${name}`, Buffer.from(data, "base64"));
  }

  const home = createUserProject();
  const url = await listenOnLoopback(server);
  // npm requires a credential to publish.
  home.write(".npmrc", `registry=${url}/\n${url.replace("http:", "")}/:_authToken=any\ncache=${home.path}/cache\n`);
  // `npm run --silent` would also silence the npm under test.
  const environment = { npm_config_userconfig: join(home.path, ".npmrc"), npm_config_loglevel: "notice" };
  return {
    names: () => [...packages.keys()],
    run: (command, folder) => buildStep("bash", ["-c", command], { folder, environment }),
    [Symbol.dispose]() {
      server.close();
      rmSync(home.path, { recursive: true });
    },
  };
}

/** What npm prints while it publishes a package. */
export type PrintedPublication = { readonly id: string; readonly printed: string };

/** Publishes packages from dist/, in this order, with the release commands, but without provenance. */
export async function publishPackages(
  { run }: LocalRegistry,
  built: readonly string[] = protoportPackages,
): Promise<readonly PrintedPublication[]> {
  const { path } = createUserProject();
  const folders = built.map((name) => `./dist/${name}`).join(" ");
  await run(`npm pack --silent --pack-destination ${path} ${folders}`, projectFolder);
  const { version } = readManifest(join(projectFolder, "package.json"));
  const names = built.map((name) => readManifest(join(projectFolder, "dist", name, "package.json")).name);
  const publications: PrintedPublication[] = [];
  for (const { id, publish } of publicationsOf(names, version, path)) {
    const printed = await run(publish.join(" ").replace(" --provenance", ""), projectFolder);
    publications.push({ id, printed });
  }
  rmSync(path, { recursive: true });
  return publications;
}
