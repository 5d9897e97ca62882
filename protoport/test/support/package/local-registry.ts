import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import { basename, join } from "node:path";
import { text } from "node:stream/consumers";
import { buildStep, listenOnLoopback, projectFolder } from "@protoport/testing";
import { readManifest } from "../../../tools/build/manifest.ts";
import { publicationsOf } from "../../../tools/build/publications.ts";
import { createUserProject } from "./user-project.ts";

/** A registry on this machine for publishing packages, which redirects npm to the real one for all others. */
export interface LocalRegistry extends Disposable {
  /** The published packages' names, in order. */
  readonly names: () => readonly string[];
  readonly run: (command: string, folder: string) => Promise<string>;
}

/** Starts a {@link LocalRegistry}. @param own - matches the names of packages that only this registry has */
export async function startRegistry(own: RegExp): Promise<LocalRegistry> {
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
  built: readonly string[],
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

/** A registry on this machine for the packages of one scope. */
export interface ScopeRegistry extends Disposable {
  readonly url: string;
}

/**
 * Starts a registry that has these tarballs. A project whose `.npmrc` has this registry for the tarballs' scope gets all
 * other packages from its usual registry or from npm's cache, unlike with {@link startRegistry}.
 */
export async function serveTarballs(tarballs: readonly string[]): Promise<ScopeRegistry> {
  const contents = new Map<string, string | Buffer>();
  const server = createServer((request, response) => {
    const content = contents.get(decodeURIComponent(request.url ?? "").slice(1));
    // A later registry with the same port may have another build of the packages.
    response.setHeader("cache-control", "no-store");
    if (content === undefined) response.writeHead(404).end("{}");
    else response.end(content);
  });
  const url = await listenOnLoopback(server);
  for (const tarball of tarballs) {
    const packed = readFileSync(tarball);
    const words = ["--extract", "--to-stdout", "--file", tarball, "package/package.json"];
    const manifest: Readonly<Record<"name" | "version", string>> = JSON.parse(
      execFileSync("tar", words, { encoding: "utf8" }),
    );
    const { name, version } = manifest;
    const path = `${name}/-/${basename(tarball)}`;
    const integrity = `sha512-${createHash("sha512").update(packed).digest("base64")}`;
    const versions = { [version]: { ...manifest, dist: { tarball: `${url}/${path}`, integrity } } };
    contents.set(name, JSON.stringify({ name, "dist-tags": { latest: version }, versions })).set(path, packed);
  }
  return { url, [Symbol.dispose]: () => void server.close() };
}
