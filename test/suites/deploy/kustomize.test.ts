import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { buildStep, createTempFolder, projectFolder } from "@protoport/testing/process";
import { validateManifests } from "../../../protoport/test/support/validate-manifests.ts";

async function render(databaseUrl: string, resources: readonly string[] = []): Promise<string> {
  using folder = createTempFolder();
  cpSync(join(projectFolder, "deploy/kubernetes"), folder.path, { recursive: true });
  const overlay = folder.file("overlay/kustomization.yaml");
  const list = ["../base", ...resources].join(", ");
  writeFileSync(overlay, readFileSync(overlay, "utf8").replace("resources: [../base]", `resources: [${list}]`));
  writeFileSync(folder.file("overlay/secret.env"), `DATABASE_URL=${databaseUrl}\n`);
  writeFileSync(folder.file("overlay/token-hashes"), "");
  return await buildStep("kustomize", ["build", folder.file("overlay")]);
}

const kindsOf = (documents: readonly string[]): string[] =>
  documents.map((text) => /^kind: (.*)$/m.exec(text)?.[1] ?? "").toSorted((one, other) => one.localeCompare(other));

const secretsIn = (text: string): string[] => text.match(/plantstore-[0-9a-z]{10}\b/g) ?? [];

test("the overlay sets image, namespace, replicas and settings, and migrates first", async () => {
  const documents = (await render("postgres://a@b/c")).split(/^---$/m);
  // oxfmt-ignore
  expect(kindsOf(documents)).toEqual(["Deployment", "Job", "NetworkPolicy", "PodDisruptionBudget", "Secret", "Service"]);
  for (const text of documents) expect(text).toMatch(/^ {2}namespace: plants$/m);
  const [deployment = ""] = documents.filter((text) => text.includes("kind: Deployment"));
  expect(deployment).toMatch(/replicas: 5$/m);
  expect(deployment).toMatch(/name: PLANTSTORE_PUBLIC_URL\n +value: https:\/\/plants.example/);
  const images = documents.flatMap((text) => text.match(/image: .*/g) ?? []);
  expect(images).toEqual(Array(2).fill(`image: registry.example/plantstore:${manifest.version}`));
  expect(kindsOf(documents.filter((text) => text.includes("rollout: first")))).toEqual(["Job", "Secret"]);
});

test("a changed secret gets a new name, which restarts the replicas", async () => {
  const [before, after] = [secretsIn(await render("postgres://a@b/c")), secretsIn(await render("postgres://a@b/d"))];
  // In the secret, in the job, and twice in the deployment, as a variable and as a file.
  expect([before.length, new Set(before).size, after.length]).toEqual([4, 1, 4]);
  expect(after).not.toEqual(before);
});

test("the overlay is valid for Kubernetes", async () =>
  await validateManifests("overlay.yaml", await render("postgres://a@b/c")));

test("the pod monitor selects the pods and their metrics port", async () => {
  const documents = (await render("postgres://a@b/c", ["pod-monitor.yaml"])).split(/^---$/m);
  const [monitor = ""] = documents.filter((text) => text.includes("kind: PodMonitor"));
  const [deployment = ""] = documents.filter((text) => text.includes("kind: Deployment"));
  expect(monitor).toMatch(/port: metrics$/m);
  expect(deployment).toMatch(/containerPort: 9464\n +name: metrics$/m);
  const selector = /matchLabels:\n +app: plantstore$/m;
  expect([monitor, deployment].filter((text) => selector.test(text))).toHaveLength(2);
});
