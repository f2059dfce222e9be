// Filters of error examples. Without JavaScript, all of them are shown.
for (const form of document.querySelectorAll("form.filters")) {
  const items = [...document.getElementById(form.dataset.list).children];
  const texts = items.map((item) => item.querySelector(".text").textContent.toLowerCase());
  const update = () => {
    const { kind, type, text } = Object.fromEntries(new FormData(form));
    let shown = 0;
    items.forEach((item, place) => {
      const fits = (!kind || item.dataset.kind === kind) && (!type || item.dataset.type === type)
        && texts[place].includes(text.toLowerCase());
      item.hidden = !fits;
      shown += fits;
    });
    form.querySelector("output").textContent = `${shown} of ${items.length}`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
}
