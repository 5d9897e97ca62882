// The greenhouse in a Fastify application: npx node examples/frameworks/fastify.ts 8080
//   curl http://127.0.0.1:8080/sensors/palm/reading
import cors from "@fastify/cors";
import helmet from "@fastify/helmet";
import fastify, { type FastifyInstance } from "fastify";
import { createGateway } from "@plantstore/gateway";
import { announce } from "../servers/announce.ts";
import { routes } from "../servers/greenhouse.ts";

const gateway = createGateway({ routes });
const app = fastify();

app.register(helmet);
app.register(cors, { origin: "https://shop.example" });
// An encapsulated plugin, so that its body parsers do not affect the application. Its route gets the requests that match
// no other route, and passes on those that the gateway does not serve.
app.register(async (greenhouse: FastifyInstance) => {
  greenhouse.removeAllContentTypeParsers();
  // The gateway reads bodies itself.
  greenhouse.addContentTypeParser("*", (_request, _body, done) => done(null));
  // The CORS plugin already has a route for all OPTIONS requests.
  const registered = greenhouse.hasRoute({ method: "OPTIONS", url: "/*" }) ? ["OPTIONS"] : [];
  greenhouse.route({
    method: greenhouse.supportedMethods.filter((method) => !registered.includes(method)),
    url: "/*",
    handler: (request, reply) => {
      // Sends the headers that hooks have set on `reply` with the response of the gateway.
      for (const [name, value = ""] of Object.entries(reply.getHeaders())) reply.raw.setHeader(name, value);
      gateway.handler(request.raw, reply.raw, (error) =>
        error === undefined ? reply.callNotFound() : reply.send(error),
      );
    },
  });
});
app.get("/", (_request, reply) => reply.type("text/html").send("<h1>Greenhouse</h1>\n"));
app.post("/echo", (request, reply) => reply.send(request.body));

await app.ready();
announce(app.server);
