import fastify from "fastify";
import { isAdmitted, messages } from "../servers/credential.ts";
import { createBenchPlants } from "../servers/plants.ts";
import { listen, serve } from "../servers/serve.ts";

// fastify 5: the credential in a hook that runs before the body is read, the id checked by a schema.
const plants = createBenchPlants();
const app = fastify();

app.addHook("onRequest", async (request, reply) => {
  if (isAdmitted(request.headers.authorization)) return;
  await reply.code(400).header("www-authenticate", messages.challenge).send(messages.unauthenticated);
});
app.delete<{ Params: { id: string } }>(
  "/plants/:id",
  { schema: { params: { type: "object", properties: { id: { type: "string", pattern: messages.idPattern } } } } },
  async (request, reply) => {
    const id = BigInt(request.params.id);
    if (plants.delete(id)) return await reply.code(204).send();
    return await reply.code(400).send(messages.notFound(id));
  },
);

await app.ready();
await serve(() => listen(app.server));
