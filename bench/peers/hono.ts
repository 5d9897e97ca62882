import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { Server } from "node:http";
import { isAdmitted, messages } from "../servers/credential.ts";
import { createBenchPlants } from "../servers/plants.ts";
import { listen, serve } from "../../protoport/bench/servers/serve.ts";

// Server on hono 4 with its adapter for Node. The server checks the credential in a middleware and the id by the
// route's pattern.
const plants = createBenchPlants();
const app = new Hono();

app.use(async (context, next) => {
  if (isAdmitted(context.req.header("authorization"))) return await next();
  return context.json(messages.unauthenticated, 400, { "www-authenticate": messages.challenge });
});
app.delete("/plants/:id{0|-?[1-9][0-9]*}", (context) => {
  const id = BigInt(context.req.param("id"));
  return plants.delete(id) ? context.body(null, 204) : context.json(messages.notFound(id), 400);
});

const server = createAdaptorServer({ fetch: app.fetch });
if (!(server instanceof Server)) throw new Error("the adapter did not create an HTTP/1.1 server");
await serve(() => listen(server));
