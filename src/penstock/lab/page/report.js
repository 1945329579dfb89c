const failed = [];
const options = { actions: false, renderer: "svg" };
Promise.all(Object.entries(PLOTS).map(([id, spec]) =>
  vegaEmbed("#" + id, spec, options).catch(error => { failed.push(id + ": " + error); console.error(error); })
)).then(() => { document.body.dataset.drawn = document.querySelectorAll(".plot svg").length;
                document.body.dataset.failed = failed.length; });
