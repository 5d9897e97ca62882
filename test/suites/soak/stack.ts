import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { descriptorSetOf, type Dice, freePort, projectFolder } from "@protoport/testing";
import { PlantService } from "../../../src/gen/es/plantstore/v1/plant_service_pb.ts";
import { callerToken } from "../cluster/callers.ts";
import { type LossyLink, startLossyLink } from "./lossy-link.ts";
import { Service } from "./service.ts";

/** Two plant store replicas with a proxy in front. Dispose it with `await using`. */
export interface Stack extends AsyncDisposable {
  readonly replicas: readonly [Service, Service];
  readonly replicaPorts: readonly number[];
  readonly proxy: Service;
  readonly proxyPort: number;
  /** The link from the proxy to the second replica. */
  readonly lossy: LossyLink;
  reloadProxy(): void;
}

/** Starts the replicas and the proxy, with logs in `folder`. @param release - the replicas' `plantstore` */
export async function startStack(
  folder: string,
  url: string,
  release: string,
  dice: Dice,
  onProblem: (problem: string) => void,
): Promise<Stack> {
  const [one, other, proxyPort, adminPort] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const lossy = await startLossyLink(other, dice);
  const serviceOf = (name: string, command: readonly string[], probePort: number, environment = {}): Service => {
    const probeUrl = `http://127.0.0.1:${probePort}/readyz`;
    return new Service(command, { name, probeUrl, logFile: join(folder, `${name}.log`), environment, onProblem });
  };
  const plantstore = { PLANTSTORE_TOKENS: callerToken, PLANTSTORE_AUDIT: "by-level", PLANTSTORE_DRAIN_DELAY_MS: "500" };
  const settings = { DATABASE_URL: url, ...plantstore, LOG_LEVEL: "warn" };
  const replicaOf = (name: string, port: number): Service =>
    serviceOf(name, [release, "serve"], port, { ...settings, PORT: String(port) });
  const replicas = [replicaOf("replica-0", one), replicaOf("replica-1", other)] as const;
  const descriptors = join(folder, "plants.binpb");
  const credential = join(folder, "credential");
  const file = join(folder, "proxy.yaml");
  writeFileSync(descriptors, descriptorSetOf(PlantService.file));
  writeFileSync(credential, `Bearer ${callerToken}`);
  /** Writes a configuration that differs from the previous versions'. */
  const configure = (version: number): void => {
    const reflection = { descriptors: "reflection", reflectionHeader: { authorization: { file: credential } } };
    const upstream = {
      addresses: [one, lossy.port].map((port) => `http://127.0.0.1:${port}`),
      ...(version % 2 === 0 ? { descriptors } : reflection),
      keepaliveMs: 1_000 + (version % 10),
      ...(version % 3 === 0 ? {} : { healthService: "" }),
    };
    const ports = { listen: { port: proxyPort }, admin: { port: adminPort } };
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ ...ports, upstreams: [upstream], drain: { delayMs: 0 }, wait: true }));
  };
  let version = 0;
  configure(version);
  const main = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const proxy = serviceOf("proxy", [process.execPath, main, "--config", file], adminPort);
  const services = [...replicas, proxy];
  await Promise.all(services.map((service) => service.start()));
  return {
    replicas,
    replicaPorts: [one, other],
    proxy,
    proxyPort,
    lossy,
    reloadProxy: () => {
      configure(++version);
      proxy.signal("SIGHUP");
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(services.map((service) => service.kill()));
      await lossy[Symbol.asyncDispose]();
    },
  };
}
