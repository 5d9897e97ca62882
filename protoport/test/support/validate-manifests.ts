import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { buildStep } from "../../testing/src/process/build-step.ts";
import { projectFolder } from "../../testing/src/process/child-program.ts";
import { openPython } from "../../testing/src/process/python.ts";
import { createTempFolder } from "../../testing/src/process/temp-folder.ts";

/** Validates manifests by a Kubernetes version's schemas, without unknown fields. @throws Error if they are invalid */
export async function validateManifests(name: string, documents: string): Promise<void> {
  using folder = createTempFolder();
  writeFileSync(folder.file(name), documents);
  const programs = await openPython(join(projectFolder, "test/suites/deploy/requirements.txt"));
  const options = ["--strict", "--kubernetes-version", "1.34"];
  await buildStep(join(programs, "kubernetes-validate"), [...options, folder.file(name)]);
}
