import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { projectFiles, projectFolder } from "@protoport/testing/process";

const read = (file: string): string => readFileSync(join(projectFolder, file), "utf8");
const workflows = readdirSync(join(projectFolder, ".github/workflows")).map((name) => `.github/workflows/${name}`);

test.each(workflows)("%s pins each action by commit hash, with its version", (workflow) => {
  const uses = [...read(workflow).matchAll(/\buses: (.*)$/gm)].map(([, action = ""]) => action);
  expect(uses.length).toBeGreaterThan(0);
  for (const action of uses) expect(action).toMatch(/^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
});

test("all workflows use the same version for each action", () => {
  const pinned = workflows.flatMap((workflow) => read(workflow).match(/[\w-]+\/[\w-]+@[0-9a-f]{40}.*$/gm) ?? []);
  const names = new Set(pinned.map((action) => action.split("@")[0]));
  expect(new Set(pinned).size).toBe(names.size);
});

test.each(workflows)("%s has only read permissions, except in jobs that declare more", (workflow) => {
  expect(read(workflow)).toMatch(/^permissions:\n {2}contents: read\n$/m);
});

test.each([
  { ecosystem: "npm", manifest: "package-lock.json" },
  { ecosystem: "gomod", manifest: "go.mod" },
  { ecosystem: "cargo", manifest: "Cargo.toml" },
  { ecosystem: "maven", manifest: "pom.xml" },
  { ecosystem: "pip", manifest: "requirements.txt" },
  { ecosystem: "docker", manifest: "Dockerfile" },
])("every folder with a $manifest is listed in dependabot.yml", ({ ecosystem, manifest }) => {
  const updates = read(".github/dependabot.yml").split("- package-ecosystem: ");
  const listed = updates
    .filter((update) => update.startsWith(`${ecosystem}\n`))
    .flatMap((update) => /directory: (\S+)|directories: \[(.*)\]/.exec(update)?.slice(1).join("").split(", ") ?? []);
  const folders = projectFiles()
    .filter((file) => file === manifest || file.endsWith(`/${manifest}`))
    .map(dirname);
  expect(listed.toSorted()).toEqual(folders.map((folder) => (folder === "." ? "/" : `/${folder}`)).toSorted());
});
