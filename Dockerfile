# The server, a worker, or any other command of `posthorn`. The data folder is where SQLite keeps its file.
FROM node:24-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY src ./src
COPY scripts ./scripts
COPY dashboard ./dashboard
RUN npm run build && npm prune --omit=dev --ignore-scripts

FROM node:24-slim
ENV NODE_ENV=production POSTHORN_HOST=0.0.0.0 POSTHORN_STORE=sqlite:/data/posthorn.db
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist ./dist
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 8071
ENTRYPOINT ["node", "--max-semi-space-size=16", "/app/dist/cli/main.js"]
CMD ["serve"]
