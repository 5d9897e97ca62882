import { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { createMcpHandler, fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { isAdmitted, messages } from "../servers/credential.ts";
import { createBenchPlants } from "../servers/plants.ts";
import { listen, serve } from "../../protoport/bench/servers/serve.ts";

// Server on the official TypeScript SDK 2 with hono's adapter for Node, in its fastest configuration. The configuration
// has no streams and no revisions that begin with `initialize`, and schemas are compiled once. The program creates an
// MCP server for each request.
const plants = createBenchPlants();
const inputSchema = fromJsonSchema<{ id: string }>({
  type: "object",
  properties: { id: { type: "string", pattern: messages.idPattern } },
  required: ["id"],
  additionalProperties: false,
});
const outputSchema = fromJsonSchema<object>({ type: "object" });

function createServer(): McpServer {
  const server = new McpServer({ name: "plantstore", version: "1.0.0" });
  server.registerTool(
    "plantstore_v1_PlantService_DeletePlant",
    {
      title: "Delete Plant",
      description: "Deletes a single plant permanently.",
      inputSchema,
      outputSchema,
      annotations: { destructiveHint: true, idempotentHint: true },
    },
    ({ id: text }) => {
      const id = BigInt(text);
      if (plants.delete(id)) return { content: [{ type: "text", text: "{}" }], structuredContent: {} };
      return { content: [{ type: "text", text: messages.notFound(id).message }], isError: true };
    },
  );
  return server;
}

const handler = createMcpHandler(createServer, { legacy: "reject", responseMode: "json" });
const server = createAdaptorServer({
  fetch: (request: Request) => {
    if (isAdmitted(request.headers.get("authorization") ?? undefined)) return handler.fetch(request);
    return Response.json(messages.unauthenticated, {
      status: 401,
      headers: { "www-authenticate": messages.challenge },
    });
  },
});
if (!(server instanceof Server)) throw new Error("the adapter did not create an HTTP/1.1 server");
await serve(() => listen(server));
