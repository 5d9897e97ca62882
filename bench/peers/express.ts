import express from "express";
import { createServer } from "node:http";
import { isAdmitted, messages } from "../servers/credential.ts";
import { createBenchPlants } from "../servers/plants.ts";
import { listen, serve } from "../../protoport/bench/servers/serve.ts";

// Server on express 5, which checks the credential in a middleware and the id in the handler.
const plants = createBenchPlants();
const idPattern = new RegExp(messages.idPattern);
const app = express();

app.use((request, response, next) => {
  if (isAdmitted(request.headers.authorization)) next();
  else response.status(400).set("www-authenticate", messages.challenge).json(messages.unauthenticated);
});
app.delete("/plants/:id", (request, response) => {
  if (!idPattern.test(request.params.id)) {
    response.status(400).json(messages.badId);
    return;
  }
  const id = BigInt(request.params.id);
  if (plants.delete(id)) response.status(204).end();
  else response.status(400).json(messages.notFound(id));
});

await serve(() => listen(createServer(app)));
