import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import manifest from "../../../protoport/gateway/package.json" with { type: "json" };
import { protoportPackages } from "../../../protoport/tools/build/manifest.ts";
import { ProjectCopy } from "../../../tools/mutants/project-copy.ts";
import { manifests, packageNames } from "../../../tools/release/texts.ts";
// oxfmt-ignore
import { buildLimitMs, createTempFolder, type ProgramResult, projectFolder, runProgram
} from "@protoport/testing/process";

// `npm run release` in a separate repository, a copy of this project with one commit and a remote that must stay empty.

const copy = new ProjectCopy(projectFolder);
const remote = createTempFolder();
afterAll(() => {
  copy[Symbol.dispose]();
  remote[Symbol.dispose]();
});

const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: copy.folder, encoding: "utf8" }).trim();

const release = async (...words: readonly string[]): Promise<ProgramResult> =>
  await releaseWith(join(copy.folder, "node_modules/.bin"), ...words);

/** Runs the command with a folder's programs first on PATH. */
async function releaseWith(folder: string, ...words: readonly string[]): Promise<ProgramResult> {
  const PATH = [folder, process.env["PATH"]].join(delimiter);
  return await runProgram(process.execPath, [join(copy.folder, "tools/release/main.ts"), ...words], {
    folder: copy.folder,
    environment: { PATH, NODE_OPTIONS: "", NODE_ENV: "" },
    limitMs: buildLimitMs,
  });
}

const read = (file: string): string => readFileSync(join(copy.folder, file), "utf8");
const current = manifest.version;

beforeAll(() => {
  // The commits' author is not a real person.
  const identity = { "user.name": "Release", "user.email": "release@plants.example", "commit.gpgSign": "false" };
  git("init", "--quiet", "--initial-branch=main");
  for (const [key, value] of Object.entries({ ...identity, "tag.gpgSign": "false" })) git("config", key, value);
  execFileSync("git", ["init", "--quiet", "--bare", remote.path]);
  git("remote", "add", "origin", remote.path);
  git("add", "--all");
  git("commit", "--quiet", "--message", "Everything");
});

describe("npm run release", () => {
  test.each([
    ["without a version", [], 'version must be a semantic version such as 0.2.0 or 0.2.0-rc.1, got ""'],
    ["with a version of two numbers", ["1.0"], 'got "1.0"'],
    ["with a tag instead of a version", ["v1.0.0"], 'got "v1.0.0"'],
    ["with an unknown option", ["1.0.0", "--skip-check"], "Unknown option '--skip-check'"],
  ])("%s exits with the usage error code", async (_name, words, says) => {
    const { exitCode, stderr } = await release(...words);
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(says) });
  });

  test.each([
    { name: "a changed file", file: "README.md" },
    { name: "a new file", file: "notes.txt" },
  ])("fails when $name is not committed, and reports the file", async ({ file }) => {
    const path = join(copy.folder, file);
    const before = file === "README.md" ? readFileSync(path, "utf8") : undefined;
    writeFileSync(path, "changed\n");
    const { exitCode, stderr } = await release(current);
    if (before === undefined) execFileSync("rm", [path]);
    else writeFileSync(path, before);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining(file) });
  });

  test("fails when the version's tag exists", async () => {
    git("tag", "v8.8.8");
    const { exitCode, stderr } = await release("8.8.8");
    const want = { exitCode: 1, stderr: "not released: tag v8.8.8 already exists; choose another version\n" };
    expect({ exitCode, stderr }).toEqual(want);
  });

  test("changes no files or tags when it fails", () => {
    expect(git("status", "--porcelain")).toBe("");
    expect(git("tag")).toBe("v8.8.8");
  });
});

const names = [...protoportPackages.map((name) => `protoport-${name}`), "plantstore"];
const artifacts = (version: string): string[] =>
  ["RELEASE_NOTES.md", "SHA256SUMS", "sbom.json", ...names.map((name) => `${name}-${version}.tgz`)].toSorted();

const inRelease = (command: string): string =>
  execFileSync("sh", ["-c", command], { cwd: join(copy.folder, "dist/release"), encoding: "utf8" });

describe("a release of the checkout's version", () => {
  beforeAll(async () => {
    const { exitCode, stdout, stderr } = await release(current, "--skip-checks");
    expect(exitCode, stdout + stderr).toBe(0);
    expect(stdout).toContain(`created the tag v${current} and dist/release/; nothing is published yet`);
  });

  test("tags the existing commit, with the release notes as message", () => {
    expect(git("rev-list", "--count", "HEAD")).toBe("1");
    expect(git("rev-parse", `v${current}^{commit}`)).toBe(git("rev-parse", "HEAD"));
    expect(git("cat-file", "-t", `v${current}`)).toBe("tag");
    const message = git("tag", "--list", "--format=%(contents)", `v${current}`);
    expect(message).toBe(read("dist/release/RELEASE_NOTES.md").trim());
  });

  test("writes release notes from the changelog, with headings", () => {
    const notes = read("dist/release/RELEASE_NOTES.md");
    expect(notes).toMatch(/^### The plant store \(`plantstore`\)\n[^]*\n### Protoport\n/);
  });

  test("writes a tarball for each package, an SBOM, notes and checksums", () =>
    expect(readdirSync(join(copy.folder, "dist/release")).toSorted()).toEqual(artifacts(current)));

  test("writes valid checksums for all other files", () => {
    const others = artifacts(current).filter((name) => name !== "SHA256SUMS");
    expect(inRelease("sha256sum --check SHA256SUMS")).toBe(others.map((name) => `${name}: OK\n`).join(""));
  });

  test.each(names)("packs %s with its manifest, README and licence", (name) => {
    const tarball = `${name}-${current}.tgz`;
    const want = expect.arrayContaining(["package/package.json", "package/README.md", "package/LICENSE"]);
    expect(inRelease(`tar --list --file ${tarball}`).split("\n")).toEqual(want);
    const { version, private: isPrivate } = JSON.parse(
      inRelease(`tar --extract --to-stdout --file ${tarball} package/package.json`),
    );
    expect({ version, isPrivate }).toEqual({ version: current, isPrivate: undefined });
  });

  // Excludes the plant store and the REST transport, whose comments contain bundled packages' paths.
  test("builds byte-identical tarballs in another folder", () => {
    for (const name of ["protoport-gateway", "protoport-auth"]) {
      const file = `${name}-${current}.tgz`;
      expect(
        readFileSync(join(copy.folder, "dist/release", file)).equals(readFileSync(join(projectFolder, "dist", file))),
      ).toBe(true);
    }
  });

  test("writes an SBOM with all packages, their dependencies and versions", () => {
    const { bomFormat, components } = JSON.parse(read("dist/release/sbom.json"));
    const found = components.map(({ name, version }: Readonly<Record<string, string>>) => `${name} ${version}`);
    expect(bomFormat).toBe("CycloneDX");
    const versions = [`@protoport/gateway ${current}`, `plantstore ${current}`, expect.stringMatching(/^jose 6\./)];
    expect(found).toEqual(expect.arrayContaining(versions));
    expect(read("dist/release/sbom.json")).not.toContain(copy.folder);
  });
});

const ids = packageNames().map((name) => `${name}@${current}`);

interface Publication {
  readonly name: string;
  /** The packages that npm has in this version. */
  readonly existing?: readonly string[];
  /** A pattern for commands that npm refuses. */
  readonly refused?: string;
  readonly exitCode: number;
  /** The tarballs in the order in which they are published. */
  readonly sent: readonly string[];
}

test.each<Publication>(
  // oxfmt-ignore
  [
    { name: "publishes each tarball with provenance, after its dependencies", exitCode: 0, sent: names },
    { name: "stops after a package that npm refuses", refused: "publish*docs-page", exitCode: 1,
      sent: names.slice(0, names.indexOf("protoport-docs-page") + 1) },
    { name: "skips packages that npm already has in this version", existing: ids.slice(0, 2), exitCode: 0,
      sent: names.slice(2) },
    { name: "publishes nothing when npm has all packages", existing: ids, exitCode: 0, sent: [] },
  ],
)("--publish $name", async ({ existing = [], refused = "none", exitCode, sent }) => {
  using programs = createTempFolder();
  const views = existing.map((id) => `"view ${id} version") echo ${current} ;;`);
  const script = `#!/bin/sh
echo "$*" >>"$0.calls"
case "$*" in
${views.join("\n")}
view*) echo "npm error code E404" >&2; exit 1 ;;
${refused}*) exit 1 ;;
esac
`;
  writeFileSync(programs.file("npm"), script, { mode: 0o755 });
  expect(await releaseWith(programs.path, "--publish")).toMatchObject({
    exitCode,
    stdout: existing.map((id) => `${id} is already published, skipped\n`).join(""),
    // npm's error for a version that does not exist yet is not printed.
    stderr: exitCode === 0 ? "" : expect.stringMatching(/^not released: Command failed: npm publish /),
  });
  const calls = readFileSync(programs.file("npm.calls"), "utf8").trimEnd().split("\n");
  const folder = join(copy.folder, "dist/release");
  const found = calls.filter((call) => !call.startsWith("view "));
  expect(found).toEqual(sent.map((name) => `publish --provenance --access public ${folder}/${name}-${current}.tgz`));
});

describe("a release of a new version", () => {
  const next = "9.9.9-rc.1";

  beforeAll(async () => {
    writeFileSync(
      join(copy.folder, "CHANGELOG.md"),
      read("CHANGELOG.md").replace("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- A leaf.\n"),
    );
    git("commit", "--quiet", "--all", "--message", "Add a leaf");
    const { exitCode, stdout, stderr } = await release(next, "--skip-checks");
    expect(exitCode, stdout + stderr).toBe(0);
  });

  test("commits all changes and tags the commit", () => {
    expect(git("log", "-1", "--format=%s")).toBe(`release: Prepare ${next}`);
    expect(git("rev-parse", `v${next}^{commit}`)).toBe(git("rev-parse", "HEAD"));
    expect(git("status", "--porcelain")).toBe("");
  });

  test("sets the version in all manifests and in the lockfile", () => {
    const { packages } = JSON.parse(read("package-lock.json"));
    for (const file of manifests) {
      expect(JSON.parse(read(file)).version).toBe(next);
      expect(packages[file.replace(/\/?package\.json$/, "")].version).toBe(next);
    }
    expect(JSON.parse(read("protoport/auth/package.json")).dependencies["@protoport/gateway"]).toBe(next);
  });

  test("writes the unreleased changes to the release notes", () => {
    expect(read("dist/release/RELEASE_NOTES.md")).toBe("### Added\n\n- A leaf.\n");
    expect(readdirSync(join(copy.folder, "dist/release")).toSorted()).toEqual(artifacts(next));
  });

  test("pushes nothing to the remote", () =>
    expect(execFileSync("git", ["-C", remote.path, "for-each-ref"], { encoding: "utf8" })).toBe(""));
});
