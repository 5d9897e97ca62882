import fastify from "fastify";
import { isAdmitted, messages } from "../servers/credential.ts";
import { createBenchPlants } from "../servers/plants.ts";
import { listen, serve } from "../../protoport/bench/servers/serve.ts";
import { certificate } from "../../protoport/bench/servers/tls.ts";

// Server on fastify 5 in its fastest configuration, without a schema, and with callbacks instead of promises. A hook
// checks the credential before the body is read.
const plants = createBenchPlants();
const app = fastify({ https: certificate ?? null });
const idPattern = new RegExp(messages.idPattern);

app.addHook("onRequest", (request, reply, done) => {
  if (isAdmitted(request.headers.authorization)) return done();
  reply.code(400).header("www-authenticate", messages.challenge).send(messages.unauthenticated);
});
app.delete<{ Params: { id: string } }>("/plants/:id", (request, reply) => {
  const { id: text } = request.params;
  if (!idPattern.test(text)) return reply.code(400).send(messages.badId);
  const id = BigInt(text);
  if (plants.delete(id)) reply.code(204).send();
  else reply.code(400).send(messages.notFound(id));
});

await app.ready();
await serve(() => listen(app.server));
