import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readProxyConfiguration } from "../../../proxy/src/settings/index.ts";
import { buildStep, projectFolder } from "@protoport/testing/process";
import { validateManifests } from "../../support/validate-manifests.ts";

// The Kubernetes manifests and the proxy's scrape configuration.

const folder = join(projectFolder, "protoport/deploy");

const render = async (overlay: string): Promise<string> =>
  await buildStep("kustomize", ["build", join(folder, "kubernetes", overlay)]);

test.each(["gateway", "sidecar"])("the overlay %s and its proxy settings are valid", async (overlay) => {
  const rendered = await render(overlay);
  await validateManifests(`${overlay}.yaml`, rendered);
  const settings = readFileSync(join(folder, `kubernetes/${overlay}/proxy.yaml`), "utf8");
  const { upstreams, admin } = readProxyConfiguration({ name: "proxy.yaml", text: settings }).settings;
  expect([upstreams.length, admin.port]).toEqual([1, 9464]);
  expect(rendered).toContain("registry.example/protoport:0.1.0");
  expect(rendered).toContain("  namespace: orders");
});

test("a manifest with an unknown field or a wrong type is refused", async () => {
  const rendered = await render("gateway");
  const withField = rendered.replace("replicas: 3", "replica: 3");
  await expect(validateManifests("field.yaml", withField)).rejects.toThrow("replica");
  const withType = rendered.replace("replicas: 3", 'replicas: "3"');
  await expect(validateManifests("type.yaml", withType)).rejects.toThrow("integer");
});

test("the gateway resolves its headless service every two seconds", async () => {
  expect(await render("gateway")).toMatch(/clusterIP: None/);
  const text = readFileSync(join(folder, "kubernetes/gateway/proxy.yaml"), "utf8");
  const [upstream] = readProxyConfiguration({ name: "proxy.yaml", text }).settings.upstreams;
  expect(upstream).toMatchObject({ addresses: ["dns:orders:50051"], resolveEveryMs: 2_000 });
});

test("the sidecar starts before the service and stops after it", async () =>
  expect(await render("sidecar")).toMatch(/initContainers:(?:\n {6}.*)*\n {8}restartPolicy: Always/));
