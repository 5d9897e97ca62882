import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createGateway } from "@protoport/gateway";
import { projectFolder } from "../../../testing/src/process/child-program.ts";
import { startNode } from "../../../testing/src/process/command-line.ts";
import { createTempFolder } from "../../../testing/src/process/temp-folder.ts";

/** An agent whose REST is served by a proxy, and whose card names the proxy. Dispose it with `await using`. */
export interface ProxiedAgent extends AsyncDisposable {
  /** Where clients find the card. */
  readonly url: string;
}

/** Starts a proxy with the profile a2a that calls an agent over gRPC. */
export async function proxyAgent(agentUrl: string): Promise<ProxiedAgent> {
  const folder = createTempFolder();
  const descriptors = folder.file("a2a.binpb");
  const module = ["--config", "protoport/examples/proto/buf.workspace.yaml", "--path", "protoport/examples/proto/lf"];
  execFileSync("npx", ["buf", "build", ...module, "-o", descriptors], { cwd: projectFolder });
  const program = join(projectFolder, "protoport/proxy/src/command/main.ts");
  const args = ["--upstream", agentUrl, "--descriptors", descriptors, "--rest-profile", "a2a", "--port", "0"];
  const proxy = startNode([program, ...args], folder.path);
  const [, url = ""] = await proxy.find(/^(http:\S+) serves/m);
  const path = "/.well-known/agent-card.json";
  const card = (await (await fetch(`${agentUrl}${path}`)).text()).replaceAll(agentUrl, url);
  const header = { "content-type": "application/json" };
  const cards = createGateway({
    routes: () => {},
    endpoints: [{ path, open: true, handle: () => ({ httpStatus: 200, header, body: card }) }],
  });
  const { address, port } = await cards.listen();
  return {
    url: `http://${address}:${port}`,
    [Symbol.asyncDispose]: async () => {
      await cards.close();
      await proxy[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}
