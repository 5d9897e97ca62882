import fastify from "fastify";

// fastify with one route that does nothing, in JavaScript like the programs of bench/starts after their build.
const app = fastify();
app.post("/plantstore.v1.PlantService/DeletePlant", () => ({}));
await app.listen({ host: "127.0.0.1", port: 0 });
console.error(`port ${app.server.address().port}`);
