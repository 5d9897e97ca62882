import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildStep, createTempFolder, openPython, projectFolder } from "@protoport/testing";

/** Validates manifests by a Kubernetes version's schemas, without unknown fields. @throws Error if they are invalid */
export async function validateManifests(name: string, documents: string): Promise<void> {
  using folder = createTempFolder();
  writeFileSync(folder.file(name), documents);
  const programs = await openPython(join(projectFolder, "test/suites/deploy/requirements.txt"));
  const options = ["--strict", "--kubernetes-version", "1.34"];
  await buildStep(join(programs, "kubernetes-validate"), [...options, folder.file(name)]);
}
